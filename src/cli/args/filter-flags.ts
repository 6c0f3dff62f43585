/** Defines the flags of the filter, with the names that the program llm has for them. */

import type { Flags, Given } from './command.ts'
import { toolEnvFlag, turnFlags } from './turn-flags.ts'

/** Flags that load more than a plain question needs. */
const extraFlags = {
  attachment: { type: 'text', short: 'a', many: true, about: 'Add the text of this file to the question; - is stdin' },
  template: { type: 'text', short: 't', complete: 'templates', about: 'Ask with this template: a name of "template list", or a file' },
  param: { type: 'text', many: true, about: 'A value for a variable of the template: NAME=VALUE' },
  option: { type: 'text', short: 'o', many: true, about: 'A setting of the model for this call: temperature=0.2, max_tokens=500' },
  schema: { type: 'text', about: 'Print JSON of this schema: JSON Schema as a text or a file, or "name, age int, bio: a short text"' },
  extract: { type: 'boolean', short: 'x', about: 'Print only the first fenced code block; without one, the whole answer' },
  extractLast: { type: 'boolean', also: 'xl', about: 'Print only the last fenced code block' },
  noStream: { type: 'boolean', about: 'Print the answer when it is whole, at a terminal too' },
  usage: { type: 'boolean', short: 'u', about: 'Say on stderr which tokens were used' },
} as const satisfies Flags

export const filterFlags = {
  system: { type: 'text', short: 's', about: 'System prompt, in place of the soul: a text, or a file' },
  ...turnFlags,
  model: { ...turnFlags.model, short: 'm' },
  resume: { ...turnFlags.resume, also: 'cid' },
  print: { type: 'text', short: 'p', about: 'The question, as with agent -p' },
  ...extraFlags,
  tools: { type: 'text', about: 'Tools that the model may call: default (the built-in), a folder of executables, or a JSON list' },
  toolBackend: { type: 'text', about: 'Who runs the loop of a turn with --tools: native (default), bash, llm or elixir' },
  ...toolEnvFlag,
} as const satisfies Flags

export type FilterFlags = Given<typeof filterFlags>

export function hasExtras(flags: FilterFlags): boolean {
  return Object.keys(extraFlags).some((name) => Object.hasOwn(flags, name))
}
