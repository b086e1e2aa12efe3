source ./merchant.sh
vector() {
  string_to_sign "$@"
  printf '\0'
  printf '%s\0' "$(sign "$@")"
}
# VECTORS
