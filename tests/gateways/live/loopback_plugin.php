<?php
/* A payment plugin without a payment company: every payment, refund and transfer succeeds. The tests choose the status
 * of transfers and an error of refunds in pre_config. */

class loopback_plugin
{
    public static $info = ['name' => 'loopback', 'showname' => 'loopback', 'types' => ['alipay', 'wxpay']];

    public static function submit()
    {
        return ['type' => 'html', 'data' => '<p>pay ' . TRADE_NO . ' here</p>'];
    }

    public static function mapi()
    {
        return ['type' => 'qrcode', 'page' => 'wxpay_qrcode', 'url' => 'weixin://wxpay/bizpayurl?pr=' . TRADE_NO];
    }

    public static function notify()
    {
        global $order;
        processNotify($order, 'BANK' . TRADE_NO, 'buyer-1');
        return ['type' => 'html', 'data' => 'success'];
    }

    public static function refund($order)
    {
        global $conf;
        if ($conf['loopback_refund_error']) {
            return ['code' => -1, 'msg' => $conf['loopback_refund_error']];
        }
        return ['code' => 0, 'trade_no' => $order['api_trade_no'], 'refund_fee' => $order['refundmoney']];
    }

    public static function close($order)
    {
        return ['code' => 0];
    }

    public static function transfer($channel, $payout)
    {
        global $conf;
        return ['code' => 0, 'status' => (int) $conf['loopback_submitted'], 'orderid' => 'TR' . $payout['out_biz_no'],
            'paydate' => date('Y-m-d H:i:s')];
    }

    public static function transfer_query($channel, $payout)
    {
        global $conf;
        return ['code' => 0, 'status' => (int) $conf['loopback_queried'], 'errmsg' => '收款方账户异常'];
    }
}
