# The string to sign of each `[endpoint, fields]`: run with jq --raw-output --join-output.
.[] | .[0] + ([.[1] | paths(type != "object" and type != "array") as $path
  | {path: $path | map(tostring) | join("."), value: getpath($path)}
  | select(.value != null and .value != "")] | sort_by(.path) | map("\n\(.path)=\(.value)") | add) + "\u0000"
