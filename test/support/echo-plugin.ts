/** Holds the manifest of seed 001's plugin, word for word. */

export function echoManifest(version = '0.1.0'): string {
  return `name = "echo-plugin"
version = "${version}"
capabilities = ["tool"]

[[tools]]
name = "echo"
description = "Echoes input"
command = "./echo-plugin"
schema = { type = "object" }
`
}
