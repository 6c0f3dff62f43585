/** Provides a working example tool in three languages, which describes itself, takes JSON arguments, and reports failures. */

export const languages = ['sh', 'python', 'ts'] as const

export type Language = (typeof languages)[number]

/** File name extension. */
export const extensionOf: { readonly [language in Language]: string } = { sh: '.sh', python: '.py', ts: '.ts' }

/** The runtimes that execute TypeScript: Node does since 22.18. */
export type TypeScriptRuntime = 'bun' | 'node'

/** `name` must be a valid tool name, because it is inserted into the text unescaped. */
export function templateOf(language: Language, name: string, runtime: TypeScriptRuntime = 'bun'): string {
  return { sh, python, ts: ts.replace('RUNTIME', runtime) }[language].replaceAll('NAME', name)
}

const sh = `#!/bin/sh
# NAME: a tool. It is called as  NAME --describe  and as  NAME '{"text":"…"}'.
# stdout is the result, stderr the error, the exit code says which it is. Try it: braidclaw tool run NAME --json '{"text":"hello"}'
set -eu

if [ "\${1-}" = --describe ]; then
  cat <<'JSON'
{
  "name": "NAME",
  "description": "Says a text back in capital letters.",
  "parameters": {
    "type": "object",
    "properties": { "text": { "type": "string", "description": "What to say" } },
    "required": ["text"],
    "additionalProperties": false
  }
}
JSON
  exit 0
fi

command -v jq >/dev/null || { echo "NAME needs jq; install it" >&2; exit 1; }
text=$(printf %s "$1" | jq -er .text) || { echo 'NAME needs {"text": "…"}' >&2; exit 2; }
printf '%s\\n' "$text" | tr '[:lower:]' '[:upper:]'
`

const python = `#!/usr/bin/env python3
"""NAME: a tool. It is called as  NAME --describe  and as  NAME '{"text":"…"}'.

stdout is the result, stderr the error, the exit code says which it is. Try it: braidclaw tool run NAME --json '{"text":"hello"}'
"""
import json
import sys

DESCRIPTION = {
    "name": "NAME",
    "description": "Says a text back in capital letters.",
    "parameters": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What to say"}},
        "required": ["text"],
        "additionalProperties": False,
    },
}


def run(text):
    return text.upper()


if __name__ == "__main__":
    if sys.argv[1:] == ["--describe"]:
        print(json.dumps(DESCRIPTION))
        sys.exit(0)
    try:
        print(run(**json.loads(sys.argv[1])))
    except Exception as error:
        sys.exit(f"NAME: {error}")
`

const ts = `#!/usr/bin/env RUNTIME
/**
 * NAME: a tool. It is called as  NAME --describe  and as  NAME '{"text":"…"}'.
 * stdout is the result, stderr the error, the exit code says which it is. Try it: braidclaw tool run NAME --json '{"text":"hello"}'
 */

const description = {
  name: 'NAME',
  description: 'Says a text back in capital letters.',
  parameters: {
    type: 'object',
    properties: { text: { type: 'string', description: 'What to say' } },
    required: ['text'],
    additionalProperties: false,
  },
}

function run({ text }: { text: string }): string {
  return text.toUpperCase()
}

const [argument = '{}'] = process.argv.slice(2)
if (argument === '--describe') {
  console.log(JSON.stringify(description))
} else {
  try {
    console.log(run(JSON.parse(argument)))
  } catch (error) {
    console.error(\`NAME: \${error}\`)
    process.exit(1)
  }
}
`
