/** Narrows the calls of a turn to the allowed-tools of the skill or command that began it. It permits nothing. */

import { quote } from '../../../../kit/text.ts'
import type { Call, Judgement } from '../../../../runtime/event.ts'
import { toolsThere } from '../hooks/claude-hooks.ts'

export type ToolLimit = ReturnType<typeof toolLimit>

/** Further names of our tools in lists that were written for other programs. */
const further: { readonly [there: string]: readonly string[] } = {
  ...{ Bash: ['shell_output', 'shell_stop'], Read: ['file_list', 'pdf_extract'], Glob: ['file_list', 'search'], WebSearch: ['web_search'] },
  ...{ MultiEdit: ['file_edit'] },
}
/** These read what the turn itself has, or ask the person. */
const always: readonly string[] = ['skill', 'discover', 'result_read', 'ask_user']

/** `words` are names of tools, ours or those of Claude Code, each perhaps with a pattern for commands: `Bash(git add:*)`. */
export function toolLimit(words: readonly string[]) {
  const entries = words.map((word) => {
    const [, name = '', pattern] = /^([^(]*)(?:\((.*)\))?$/s.exec(word) ?? []
    return { name: name.replaceAll('__', '_'), pattern }
  })
  const names = ({ name }: { readonly name: string }, tool: string) =>
    name === tool || toolsThere[tool] === name || (Object.hasOwn(further, name) && further[name]?.includes(tool) === true)
  const covers = (tool: string, call?: Call) =>
    always.includes(tool) || entries.some((entry) => names(entry, tool) && (call?.name !== 'shell' || fits(entry.pattern, call)))

  return {
    offers: ({ name }: Pick<Call, 'name'>) => covers(name),
    /** Returns the refusal of a call that is not among them. */
    narrowed(call: Call, judged: Judgement): Judgement | undefined {
      if (judged.verdict === 'deny' || covers(call.name, call)) return undefined
      const reason = `this turn may only use ${quote(words.join(', '))} (allowed-tools of its skill or command); work with these`
      return { ...judged, verdict: 'deny', rule: 'skill.allowed_tools', reason, writes: [] }
    },
  }
}

/** A pattern fits one plain command, which is equal to it, or begins with the words before `:*` or ` *`. */
function fits(pattern: string | undefined, { input: { command } }: Call): boolean {
  if (pattern === undefined || pattern === '*') return true
  if (typeof command !== 'string' || /[;&|<>`$(){}\n\\]/.test(command)) return false
  const [text, begin] = [command.trim(), pattern.replace(/(?::| )?\*$/, '')]
  return text === begin || (begin !== pattern && text.startsWith(`${begin} `))
}
