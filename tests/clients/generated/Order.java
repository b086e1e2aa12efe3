import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.OrdersApi;
import org.openapitools.client.model.*;

/** Places a signed deposit with the client that openapi-generator generated for Java, and reads the responses. */
public class Order {
    static final ObjectMapper MAPPER = ApiClient.createDefaultObjectMapper();
    static final OrdersApi ORDERS;

    static {
        ApiClient client = new ApiClient();
        client.updateBaseUri(Merchant.URL);
        ORDERS = new OrdersApi(client);
    }

    static <T> T signed(String endpoint, Map<String, ?> fields, Class<T> model) {
        Map<String, Object> body = new LinkedHashMap<>(fields);
        body.put("api_key", "demo");
        body.put("timestamp", System.currentTimeMillis() / 1000);
        body.put("nonce", UUID.randomUUID().toString());
        body.put("signature", Merchant.sign(endpoint, body));
        return MAPPER.convertValue(body, model);
    }

    static CreateOrder200Response placed(String amount) throws ApiException {
        Map<String, ?> fields = Map.of(
            "order_type", 1, "cny_amount", amount, "paychannel_id", 2, "paychannel_paymethod", "wxpay");
        CreateOrderRequest body = new CreateOrderRequest(signed("createOrder", fields, SignedBuyOrder.class));
        return ORDERS.createOrder(body, UUID.randomUUID().toString());
    }

    public static void main(String[] arguments) throws Exception {
        CreateOrder200Response created = placed("12.50");
        CreatedBuyOrder deposit = created.getData().getCreatedBuyOrder();
        Long amount = deposit.getMerchantActualAmount(); // an int overflows at 21,474,836.47 yuan

        Map<String, ?> number = Map.of("order_no", deposit.getOrderNo());
        OrderView found = ORDERS.orderQueryDetail(
            signed("orderQueryDetail", number, SignedOrderDetailQuery.class)).getData();

        Map<?, ?> refused = Map.of();
        try {
            placed("9000000000.00");
        } catch (ApiException error) {
            refused = MAPPER.readValue(error.getResponseBody(), Map.class);
        }
        System.out.println(MAPPER.writeValueAsString(Map.of(
            "order_no", deposit.getOrderNo(), "pay_url", deposit.getPayUrl(), "merchant_actual_amount", amount,
            "created_at", created.getTime(), "status", found.getStatus(),
            "refused", Map.of("code", refused.get("code"), "data", refused.get("data")))));
    }
}
