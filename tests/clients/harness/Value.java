// What Merchant.value finds in the answer on standard input: java Value NAME
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

public class Value {
    public static void main(String[] arguments) throws Exception {
        String answer = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        new PrintStream(System.out, true, "UTF-8").print(Merchant.value(answer, arguments[0]));
    }
}
