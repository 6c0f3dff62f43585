/** Provides a working example plugin in three languages, with its test. */

export const pluginLanguages = ['sh', 'python', 'typescript'] as const

type Language = (typeof pluginLanguages)[number]

const says = 'Reads the arguments as JSON from stdin and prints the result as JSON.'

const programs: { readonly [language in Language]: { readonly file: string; readonly text: string } } = {
  sh: {
    file: 'NAME.sh',
    text: `#!/bin/sh
# ${says}
command -v jq >/dev/null || { echo 'NAME needs jq; install it' >&2; exit 1; }
exec jq '{ output: .text | ascii_upcase }'
`,
  },
  python: {
    file: 'NAME.py',
    text: `#!/usr/bin/env python3
"""${says}"""
import json
import sys

arguments = json.load(sys.stdin)
print(json.dumps({"output": arguments["text"].upper()}))
`,
  },
  typescript: {
    file: 'NAME.ts',
    text: `#!/usr/bin/env RUNTIME
/** ${says} */
import { readFileSync } from 'node:fs'

const { text } = JSON.parse(readFileSync(0, 'utf8'))
console.log(JSON.stringify({ output: text.toUpperCase() }))
`,
  },
}

/**
 * Returns the files by path. `name` must be a name of a plugin and of a tool: it is inserted unescaped. Without a `runtime` for TypeScript
 * the same text is a module of JavaScript, for an older Node.
 */
export function pluginTemplate(
  language: Language,
  name: string,
  runtime: string | undefined,
): readonly (readonly [path: string, text: string, mode: number])[] {
  const { text } = programs[language]
  const file = runtime === undefined ? programs[language].file.replace(/ts$/, 'mjs') : programs[language].file
  const manifest = `name = "NAME"
version = "0.1.0"
description = "Says a text in capital letters"
capabilities = ["tool"]

[[tools]]
name = "NAME"
description = "Says a text in capital letters"
command = "./${file}"
schema = { type = "object", properties = { text = { type = "string" } }, required = ["text"] }

[[tests]]                           # tried by: braidclaw plugin test FOLDER
tool = "NAME"
arguments = { text = "hello" }
output = "HELLO"

# [permissions]                     # without these it sees no file, host or variable of yours
# files = "read"                    # or "write"
# hosts = ["api.example.org"]
# variables = ["API_KEY"]
`
  const files = [
    ['manifest.toml', manifest, 0o644],
    [file, text.replace('RUNTIME', runtime ?? 'node'), 0o755],
  ] as const
  return files.map(([path, content, mode]) => [path.replace('NAME', name), content.replaceAll('NAME', name), mode] as const)
}
