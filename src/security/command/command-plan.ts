/** Turns a judged syntax tree into the plan that would be executed. */

import type { ParsedScript } from 'unbash'
import { type Look, type Place, resolvePath } from './flow/model.ts'
import { argsOf } from './flow/value.ts'
import { freeBuiltins, riskyBuiltins } from './names.ts'
import { printScript } from './syntax/print.ts'
import type { CommandPlan } from './verdict.ts'

export function planOf(look: Look, script: ParsedScript, place: Place): CommandPlan {
  const { edits, dotted } = look.found
  return argvPlan(look, script, place) ?? { kind: 'script', script: printScript(script, { home: look.policy.home, edits, dotted }) }
}

/** One simple command of literal words runs without a shell. */
function argvPlan(look: Look, script: ParsedScript, place: Place): CommandPlan | undefined {
  const [statement, ...more] = script.commands
  if (!statement || more.length > 0 || statement.background || statement.command.type !== 'Command') return
  const { name, prefix, suffix } = statement.command
  if (!name || prefix.length > 0 || look.found.edits.size + look.found.dotted.size > 0) return
  const words = suffix.flatMap((item) => (item.type === 'Word' ? [item] : []))
  if (words.length !== suffix.length) return
  const args = [name, ...words].flatMap((word) => argsOf(word, { look, place }))
  const argv = args.flatMap((arg) => (arg.fixed ? arg.texts : []))
  if (argv.length !== args.length || needsShell(argv)) return
  const executable = executableOf(look, argv[0] ?? '')
  return executable === undefined ? undefined : { kind: 'argv', argv, executable }
}

const alsoFiles = new Set(['true', 'false', 'test', '['])
const shellOnly = new Set(['eval', 'exec', 'trap', 'source', '.', 'command', 'builtin'])

/** Needs a shell for builtins, and where a builtin differs from the program of the same name. */
function needsShell([name = '', ...args]: readonly string[]): boolean {
  if (shellOnly.has(name) || ((freeBuiltins.has(name) || riskyBuiltins.has(name)) && !alsoFiles.has(name))) return true
  if (name === 'echo' || name === 'test' || name === '[' || name === 'pwd') return args.some((arg) => /^--/.test(arg))
  return name === 'printf' && args.some((arg) => /^--|%\(|%q|\\[uUx0-7]/.test(arg))
}

function executableOf(look: Look, name: string): string | undefined {
  if (!name.includes('/')) return look.policy.resolve(name)
  return name.startsWith('/') ? name : resolvePath(name, look.policy.cwd)
}
