// Receive callbacks. Put Merchant.java into the same folder: javac Merchant.java Receiver.java && java Receiver 9000
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;

public class Receiver {
    static final Set<String> SEEN = ConcurrentHashMap.newKeySet(); // in your shop: a unique column

    static void take(HttpExchange exchange) throws IOException {
        byte[] body = exchange.getRequestBody().readAllBytes();
        boolean good = Merchant.verified(exchange.getRequestHeaders()::getFirst, body);
        if (good && SEEN.add(exchange.getRequestHeaders().getFirst("webhook-id"))) {
            String event = new String(body, StandardCharsets.UTF_8);
            System.out.println(Merchant.value(event, "type") + " " + Merchant.value(event, "order_no"));
        }
        exchange.sendResponseHeaders(good ? 204 : 401, -1);
        exchange.close();
    }

    public static void main(String[] arguments) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
        server.createContext("/", Receiver::take);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
    }
}
