import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

public class Vectors {
    static Map<String, Object> map(Object... pairs) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int at = 0; at < pairs.length; at += 2) made.put((String) pairs[at], pairs[at + 1]);
        return made;
    }

    static List<Object> list(Object... items) {
        return Arrays.asList(items);
    }

    static void vector(String endpoint, Map<String, Object> fields) {
        String both = Merchant.stringToSign(endpoint, fields) + "\0" + Merchant.sign(endpoint, fields) + "\0";
        System.out.writeBytes(both.getBytes(StandardCharsets.UTF_8));
    }

    public static void main(String[] arguments) {
        // VECTORS
        System.out.flush();
    }
}
