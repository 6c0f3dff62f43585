/** Judges whether one shell command may run, at what risk, and exactly what would be executed. */

import { type ParsedScript, parse } from 'unbash'
import { blockingRule, namesToBlock, removalIn } from './flow/destructive.ts'
import { invoke } from './flow/invoke.ts'
import { type Flow, HOLE, type Inner, type JudgeContext, noFeed, resolvePath, type Scope, type WalkState } from './flow/model.ts'
import { searchTexts } from './flow/search.ts'
import { walkScript } from './flow/walk-script.ts'
import { argsOf } from './flow/word.ts'
import { freeBuiltins, isRefusedName, riskyBuiltins } from './names.ts'
import { printScript } from './syntax/print.ts'
import { hiddenCharacter, isTooLong, maxBytes, maxLevels, maxNodes, mentionsCommand, type ScriptSurvey, survey } from './syntax/survey.ts'
import type { CommandPlan, CommandPolicy, CommandVerdict } from './verdict.ts'

export type { CommandPlan, CommandPolicy, CommandVerdict } from './verdict.ts'

/** Pure, synchronous; never throws: any internal failure is a refusal. */
export function judgeCommand(script: string, policy: CommandPolicy): CommandVerdict {
  try {
    return decide(script, policy)
  } catch (error) {
    return refusal('command.unparseable', `the command could not be judged (${String(error).slice(0, 80)}); write it more simply`)
  }
}

function refusal(rule: string, reason: string): CommandVerdict {
  return {
    verdict: 'blocked',
    risk: 'high',
    rule,
    reason,
    plan: undefined,
    executables: [],
    writes: [],
    readOnly: false,
    runs: [],
    hosts: [],
  }
}

function decide(text: string, policy: CommandPolicy): CommandVerdict {
  if (text.includes('\0')) return refusal('command.nul', 'the command holds a NUL byte; leave it out')
  const judge = createJudge(policy)
  const hidden = hiddenCharacter(text) ?? (text.includes(HOLE) ? 'U+F8FF' : undefined)
  if (hidden !== undefined) judge.raise('command.hidden', `the command holds ${hidden}, which does not show; write it as an escape in $'…'`)
  const read = readText(judge, text, { level: 1, outer: undefined, inner: { shared: false } })
  const plan = read?.complete ? planOf(judge, read.script, read.place) : undefined
  checkCalls(judge)
  return verdictOf(judge, plan)
}

function verdictOf({ found }: JudgeContext, plan: CommandPlan | undefined): CommandVerdict {
  const executables = [...found.executables]
  const shared = { executables, writes: [...found.writes], readOnly: false, runs: [...found.runs], hosts: [...found.hosts] }
  if (found.blocked) return { verdict: 'blocked', risk: 'high', ...found.blocked, plan: undefined, ...shared }
  if (found.high) return { verdict: 'run', risk: 'high', ...found.high, plan, ...shared }
  if (!plan) return refusal('command.unparseable', 'there is nothing to run')
  const listed = executables.length > 0 ? executables.join(', ') : 'only the shell itself'
  return {
    verdict: 'run',
    risk: 'medium',
    rule: 'command.allowed',
    reason: `everything in it is allow-listed: ${listed}`,
    plan,
    ...shared,
    readOnly: !found.acts,
  }
}

function createJudge(policy: CommandPolicy): JudgeContext {
  const found: JudgeContext['found'] = {
    blocked: undefined,
    high: undefined,
    nodes: 0,
    downloads: 0,
    lookups: 0,
    executables: new Set(),
    writes: new Set(),
    acts: false,
    hosts: new Set(),
    runs: new Set(),
    edits: new Map(),
    dotted: new Set(),
    outputs: new Map(),
    calls: [],
    texts: new Set(),
    runsArguments: new Set(),
  }
  const judge: JudgeContext = {
    policy,
    found,
    block: (rule, reason) => {
      found.blocked ??= { rule, reason }
    },
    raise: (rule, reason) => {
      found.high ??= { rule, reason }
    },
    invoke: (args, place) => invoke(judge, args, place),
    script: (script, place) => walkScript(judge, script, place),
    text: (text, place, inner) => judgeText(judge, text, { place, inner }),
  }
  return judge
}

function judgeText(
  judge: JudgeContext,
  text: string,
  { place, inner }: { place: WalkState; inner: Inner },
): ReturnType<JudgeContext['text']> {
  judge.found.texts.add(text)
  const read = readText(judge, text, { level: place.level + 1, outer: place, inner })
  const flow = read?.flow ?? { ok: undefined, fail: undefined, assigned: place.assigned, output: { ...noFeed, kind: 'unknown' } }
  const { edits, dotted } = judge.found
  return { print: read?.complete ? printScript(read.script, { home: judge.policy.home, edits, dotted }) : undefined, flow }
}

type TextContext = { readonly level: number; readonly outer: WalkState | undefined; readonly inner: Inner }
type WalkedText = { readonly script: ParsedScript; readonly place: WalkState; readonly flow: Flow; readonly complete: boolean }

/** Parses and walks the text; undefined when the text is too large. */
function readText(judge: JudgeContext, text: string, around: TextContext): WalkedText | undefined {
  if (isTooLong(text)) return tooMuch(judge, text, `longer than ${maxBytes} bytes`)
  if (around.level > maxLevels) return tooMuch(judge, text, `nested more than ${maxLevels} levels deep`)
  const script = parse(text)
  const seen = survey(script, { level: around.level, home: judge.policy.home })
  judge.found.nodes += seen.nodes
  if (seen.tooDeep) return tooMuch(judge, text, `nested more than ${maxLevels} levels deep`)
  if (judge.found.nodes > maxNodes) return tooMuch(judge, text, `of more than ${maxNodes} parts`)
  if (seen.error !== undefined) unparseable(judge, text, seen.error)
  if (seen.refused !== undefined) judge.raise('command.environment', `${seen.refused} decides which programs run or how; leave it out`)
  checkFunctions(judge, seen)
  const place = placeOf(judge, seen, around)
  return { script, place, flow: walkScript(judge, script, place), complete: seen.error === undefined }
}

function tooMuch(judge: JudgeContext, text: string, why: string): undefined {
  judge.raise('command.limit', `the command is ${why}; split it up`)
  blockMentioned(judge, text, why)
}

/** Text with unknown parts may still be valid shell at run time. */
function unparseable(judge: JudgeContext, text: string, error: string): void {
  judge.raise('command.unparseable', `the command is not complete, valid shell: ${error}`)
  if (text.includes(HOLE)) blockMentioned(judge, text, 'only partly known before it runs')
}

function blockMentioned(judge: JudgeContext, text: string, why: string): void {
  const named = mentionsCommand(text, namesToBlock(judge.policy))
  if (named !== undefined) judge.block(blockingRule(named, judge.policy), `the command is ${why}, and ${named} stands in it`)
  const removal = removalIn(text, judge.policy)
  if (removal !== undefined) judge.block('command.destructive', `the command is ${why}, and in it ${removal}`)
}

function placeOf(judge: JudgeContext, seen: ScriptSurvey, { level, outer, inner }: TextContext): WalkState {
  const own = { unset: seen.unset, moves: seen.moves, functions: seen.functions }
  const positional = seen.shifts ? undefined : inner.positional
  const start = {
    level,
    inFunction: outer?.inFunction,
    external: false,
    forks: outer?.forks ?? false,
    feed: outer?.feed ?? noFeed,
    cwds: outer ? outer.cwds : [judge.policy.cwd],
  }
  if (!outer || !inner.shared) {
    const scope: Scope = { ...own, variables: seen.variables, opaque: seen.opaque, positional, inherits: outer !== undefined }
    return { ...start, scope, assigned: new Set() }
  }
  const functions = new Set([...outer.scope.functions, ...seen.functions])
  const scope: Scope = { ...outer.scope, functions, moves: outer.scope.moves || seen.moves, opaque: true, positional: undefined }
  return { ...start, scope, assigned: outer.assigned }
}

/** A function with the name of a command would be trusted as that command. */
function checkFunctions(judge: JudgeContext, { functions }: ScriptSurvey): void {
  for (const name of functions) {
    const isCommand =
      judge.policy.allow.includes(name) ||
      freeBuiltins.has(name) ||
      riskyBuiltins.has(name) ||
      /^(eval|exec|source|trap|command|env|sh|bash)$/.test(name)
    if (isCommand || name === 'command_not_found_handle' || isRefusedName(name))
      judge.raise('command.shadows', `a function named ${name} stands in for a command; give it another name`)
  }
}

/**
 * Judges functions that run their arguments by those arguments. Refuses functions that call themselves; in a pipe or the background they
 * multiply.
 */
function checkCalls(judge: JudgeContext): void {
  const { calls, runsArguments } = judge.found
  for (const { to, args, place } of [...calls]) {
    if (!runsArguments.has(to)) continue
    judge.invoke(args, { ...place, external: true })
    searchTexts(
      judge,
      args.flatMap((arg) => arg.texts.filter((text) => /\s/.test(text))),
      place,
    )
  }
  const callees = Map.groupBy(calls, (call) => call.from)
  const reaches = (from: string, to: string): boolean => {
    const seen = new Set([from])
    for (const at of seen) for (const call of callees.get(at) ?? []) seen.add(call.to)
    return from !== to && seen.has(to)
  }
  for (const { from, to, place } of calls) {
    if (from === undefined || (to !== from && !reaches(to, from))) continue
    if (place.forks) judge.block('command.fork_bomb', `${JSON.stringify(from)} starts itself again and again until the machine stops`)
    else judge.raise('command.unclear', `${JSON.stringify(from)} calls itself without an end that can be seen`)
  }
}

/** Turns a judged syntax tree into the plan that would be executed. */
function planOf(judge: JudgeContext, script: ParsedScript, place: WalkState): CommandPlan {
  const { edits, dotted } = judge.found
  return argvPlan(judge, script, place) ?? { kind: 'script', script: printScript(script, { home: judge.policy.home, edits, dotted }) }
}

/** One simple command of literal words runs without a shell. */
function argvPlan(judge: JudgeContext, script: ParsedScript, place: WalkState): CommandPlan | undefined {
  const [statement, ...more] = script.commands
  if (!statement || more.length > 0 || statement.background || statement.command.type !== 'Command') return
  const { name, prefix, suffix } = statement.command
  if (!name || prefix.length > 0 || judge.found.edits.size + judge.found.dotted.size > 0) return
  const words = suffix.flatMap((item) => (item.type === 'Word' ? [item] : []))
  if (words.length !== suffix.length) return
  const args = [name, ...words].flatMap((word) => argsOf(word, { judge, place }))
  const argv = args.flatMap((arg) => (arg.fixed ? arg.texts : []))
  if (argv.length !== args.length || needsShell(argv)) return
  const executable = executableOf(judge, argv[0] ?? '')
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

function executableOf(judge: JudgeContext, name: string): string | undefined {
  if (!name.includes('/')) return judge.policy.resolve(name)
  return name.startsWith('/') ? name : resolvePath(name, judge.policy.cwd)
}

/** The command only prints: `pwd`, `date`, `true`, `echo` with literal words, run without a shell and without writing. */
export function isHarmless({ verdict, risk, plan, writes }: CommandVerdict): boolean {
  if (verdict !== 'run' || risk !== 'medium' || plan?.kind !== 'argv' || writes.length > 0) return false
  const [name = '', ...args] = plan.argv
  switch (name) {
    case 'pwd':
      return args.every((arg) => arg === '-P' || arg === '-L')
    case 'true':
      return args.length === 0
    case 'date':
      return args.every((arg) => /^(\+.*|-u|--utc|-R|-I(seconds|minutes|hours|date)?)$/.test(arg))
    case 'echo':
      return true
    default:
      return false
  }
}
