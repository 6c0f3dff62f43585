/** Walks through a script: judges every statement in the directories where it may run, and every word with the scripts inside it. */

import {
  type AndOr,
  type Assignment,
  type Command,
  type CommandNode,
  type CompoundList,
  forEachChild,
  type ParsedScript,
  type Pipeline,
  type PipelineNode,
  type Redirect,
  type Redirection,
  type Statement,
  type SyntaxNode,
  type Word,
} from 'unbash'
import { declarers, holdsCommand } from '../names.ts'
import { bodyOf } from '../syntax/pieces.ts'
import { walkTest } from './builtins.ts'
import {
  type Arg,
  anyFeed,
  type Cwds,
  type Feed,
  type Flow,
  type JudgeContext,
  literalArg,
  noFeed,
  sure,
  unionOf,
  type WalkState,
  widest,
} from './model.ts'
import { checkPath } from './paths.ts'
import { searchSettings } from './search.ts'
import { argOf, argsOf, walkArithmetic, walkForm, walkWord } from './word.ts'

export function walkScript(judge: JudgeContext, script: ParsedScript, place: WalkState): Flow {
  return walkStatements(judge, script.commands, place)
}

function stay(place: WalkState, output = anyFeed): Flow {
  return { ok: place.cwds, fail: place.cwds, assigned: place.assigned, output }
}

function walkStatements(judge: JudgeContext, statements: readonly Statement[], start: WalkState): Flow {
  let place = start
  let flow = stay(start, { ...noFeed, kind: 'literal' })
  for (const statement of statements) {
    flow = walkStatement(judge, statement, place)
    place = { ...place, cwds: unionOf(flow.ok, flow.fail), assigned: flow.assigned }
  }
  return statements.length > 1 ? { ...flow, output: anyFeed } : flow
}

function walkStatement(judge: JudgeContext, { command, background }: Statement, place: WalkState): Flow {
  if (!background) return walkNode(judge, command, place)
  walkNode(judge, command, { ...place, forks: true })
  return stay(place)
}

function walkNode(judge: JudgeContext, node: PipelineNode | AndOr, place: WalkState): Flow {
  switch (node.type) {
    case 'AndOr':
      return walkAndOr(judge, node, place)
    case 'Pipeline':
      return walkPipeline(judge, node, place)
    case 'Command':
      return walkCommand(judge, node, place)
    default:
      return walkCompound(judge, node, place)
  }
}

function walkAndOr(judge: JudgeContext, { commands, operators }: AndOr, place: WalkState): Flow {
  const [first, ...others] = commands
  if (!first) return stay(place)
  let flow = walkNode(judge, first, place)
  // Only the first command certainly runs.
  const certain = flow.assigned
  let reached = certain
  for (const [index, command] of others.entries()) {
    const and = operators[index] === '&&'
    const next = walkNode(judge, command, { ...place, cwds: and ? flow.ok : flow.fail, assigned: reached })
    if (and) reached = next.assigned
    flow = and
      ? { ...next, fail: unionOf(flow.fail, next.fail), output: anyFeed }
      : { ...next, ok: unionOf(flow.ok, next.ok), output: anyFeed }
  }
  return { ...flow, assigned: certain }
}

function walkPipeline(judge: JudgeContext, { commands, prefixes }: Pipeline, place: WalkState): Flow {
  const [only, ...more] = commands
  if (only && more.length === 0) {
    const flow = walkNode(judge, only, place)
    return prefixes.some((prefix) => prefix.type === 'Negation') ? { ...flow, ok: flow.fail, fail: flow.ok } : flow
  }
  let feed = place.feed
  for (const command of commands) {
    const before = judge.found.downloads
    const flow = walkNode(judge, command, { ...place, feed, forks: true })
    feed = { ...flow.output, downloads: feed.downloads || flow.output.downloads || judge.found.downloads > before }
  }
  return stay(place, feed)
}

type Compound = Exclude<CommandNode, { type: 'Command' }>

function walkCompound(judge: JudgeContext, node: Compound, place: WalkState): Flow {
  switch (node.type) {
    case 'Redirected': {
      const feed = walkRedirections(judge, node.redirects, place)
      return walkCompound(judge, node.command, { ...place, feed })
    }
    case 'Subshell':
      return stay(place, walkList(judge, node.body, place).output)
    case 'BraceGroup':
      return walkList(judge, node.body, place)
    case 'If':
      return walkIf(judge, node, place)
    case 'While': {
      const inside = { ...place, cwds: settled([node.clause, node.body], place) }
      const clause = walkList(judge, node.clause, inside)
      walkList(judge, node.body, { ...inside, cwds: clause.ok, assigned: clause.assigned })
      return stay(inside)
    }
    case 'For':
    case 'Select':
      return walkFor(judge, node, place)
    case 'ArithmeticFor':
      for (const part of [node.initialize, node.test, node.update]) if (part) walkArithmetic(judge, part, place)
      return walkLoop(judge, node.body, place)
    case 'Case':
      return walkCase(judge, node, place)
    case 'ArithmeticCommand':
      walkArithmetic(judge, node.expression, place)
      return stay(place)
    case 'TestCommand':
      walkTest(judge, node.expression, place)
      return stay(place)
    case 'Function':
      return walkFunction(judge, node, place)
    case 'Coproc':
      judge.raise('command.code', 'a coprocess runs beside the script; use a pipe instead')
      if (node.body.type === 'CompoundList') walkList(judge, node.body, { ...place, forks: true })
      else walkNode(judge, node.body, { ...place, forks: true })
      return stay(place)
  }
}

function walkList(judge: JudgeContext, list: CompoundList, place: WalkState): Flow {
  return walkStatements(judge, list.commands, { ...place, level: place.level + 1 })
}

function walkIf(judge: JudgeContext, node: Extract<Compound, { type: 'If' }>, place: WalkState): Flow {
  const clause = walkList(judge, node.clause, place)
  const after = [walkList(judge, node.then, { ...place, cwds: clause.ok, assigned: clause.assigned })]
  let otherwise = clause.fail
  for (const branch of node.elif) {
    const next = walkList(judge, branch.clause, { ...place, cwds: otherwise, assigned: clause.assigned })
    after.push(walkList(judge, branch.then, { ...place, cwds: next.ok, assigned: next.assigned }))
    otherwise = next.fail
  }
  if (node.else) after.push(walkList(judge, node.else, { ...place, cwds: otherwise, assigned: clause.assigned }))
  else after.push(stay({ ...place, cwds: otherwise }))
  return joined(after, clause.assigned)
}

function joined(flows: readonly Flow[], assigned: ReadonlySet<string>): Flow {
  const [first, ...others] = flows
  if (!first) throw new TypeError('no branch')
  const one = others.reduce<Cwds>((all, flow) => unionOf(all, unionOf(flow.ok, flow.fail)), unionOf(first.ok, first.fail))
  return { ok: one, fail: one, assigned, output: anyFeed }
}

function walkFor(judge: JudgeContext, node: Extract<Compound, { type: 'For' | 'Select' }>, place: WalkState): Flow {
  for (const word of node.wordlist ?? []) walkWord(judge, word, place)
  if (!/^[A-Za-z_]\w*$/.test(node.name.text)) judge.raise('command.unclear', 'a loop needs a plain variable name')
  return walkLoop(judge, node.body, { ...place, assigned: new Set([...place.assigned, node.name.text]) }, place.assigned)
}

function walkLoop(judge: JudgeContext, body: CompoundList, place: WalkState, assigned = place.assigned): Flow {
  const inside = { ...place, cwds: settled([body], place) }
  walkList(judge, body, inside)
  return { ...stay(inside), assigned }
}

/** A loop body that changes directory may start in any directory where it can end, so the directory becomes unknown. */
function settled(bodies: readonly CompoundList[], place: WalkState): Cwds {
  return place.scope.moves && bodies.some(moves) ? undefined : place.cwds
}

/** Tells whether the node changes the directory of the same shell; a subshell does not affect its caller. */
function moves(node: SyntaxNode): boolean {
  if (node.type === 'Subshell' || node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution') return false
  if (node.type === 'Command' && [node.name, ...node.args].some((word) => word?.type === 'Word' && movers.has(word.value))) return true
  if (node.type === 'Command' && node.name?.value === '.') return true
  let found = false
  forEachChild(node, (child) => {
    found ||= moves(child)
  })
  return found
}

const movers = new Set('cd pushd popd eval source'.split(' '))

function walkCase(judge: JudgeContext, node: Extract<Compound, { type: 'Case' }>, place: WalkState): Flow {
  walkWord(judge, node.word, place)
  const flows = node.items.map((item) => {
    for (const word of item.pattern) walkWord(judge, word, place)
    return walkList(judge, item.body, place)
  })
  return joined([stay(place), ...flows], place.assigned)
}

/** Judged once, for all its callers. */
function walkFunction(judge: JudgeContext, node: Extract<Compound, { type: 'Function' }>, place: WalkState): Flow {
  const name = node.name.text
  if (!/^[A-Za-z_:][\w:.-]*$/.test(name)) judge.raise('command.unclear', `a function may not be called ${JSON.stringify(name)}`)
  const inside: WalkState = { ...place, cwds: place.scope.moves ? undefined : place.cwds, inFunction: name, forks: false, feed: anyFeed }
  if (node.body.type === 'CompoundList') walkList(judge, node.body, inside)
  else walkNode(judge, node.body, inside)
  // A call later in the script would change the caller's directory.
  return stay(place.scope.moves && moves(node.body) ? { ...place, cwds: undefined } : place)
}

/** Walks one simple command: judges its words, redirections and assignments, and passes them on as arguments. */
function walkCommand(judge: JudgeContext, node: Command, place: WalkState): Flow {
  for (const item of node.prefix) if (item.type === 'Assignment') walkAssignment(judge, item, place)
  if (node.name) walkWord(judge, node.name, place)
  for (const item of node.suffix) {
    if (item.type === 'Word') walkWord(judge, item, place)
    if (item.type === 'Assignment') walkAssignment(judge, item, place)
  }
  const feed = walkRedirections(judge, node.redirects, place)
  if (!node.name) return { ...still(place), assigned: withNames(place, node.prefix) }
  const args = [node.name, ...node.args].flatMap((item) =>
    item.type === 'Word' ? argsOf(item, { judge, place }) : [assigned(judge, item, place)],
  )
  const outcome = judge.invoke(args, { ...place, feed })
  const declares = declarers.has(sure(args[0]) ?? '')
  return {
    ok: outcome.cwds ? outcome.cwds.to : place.cwds,
    fail: place.cwds,
    assigned: declares ? withNames(place, node.suffix) : place.assigned,
    output: outcome.output ?? anyFeed,
  }
}

function still(place: WalkState): Flow {
  return { ok: place.cwds, fail: place.cwds, assigned: place.assigned, output: { ...noFeed, kind: 'unknown' } }
}

function withNames(place: WalkState, items: Command['prefix'] | Command['suffix']): ReadonlySet<string> {
  const names = items.flatMap((item) => (item.type === 'Assignment' && item.value.type === 'Word' && !item.index ? [item.name] : []))
  return new Set([...place.assigned, ...names])
}

/** `export NAME=value` as one argument. */
function assigned(judge: JudgeContext, { name, value }: Pick<Assignment, 'name' | 'value'>, place: WalkState): Arg {
  const [arg] = value.type === 'Word' ? argsOf(value, { judge, place }) : []
  if (!arg) return literalArg(`${name}=`)
  return {
    ...arg,
    texts: arg.texts.map((text) => `${name}=${text}`),
    kind: widest('literal', arg.kind),
    vanishes: false,
    several: false,
    fixed: false,
  }
}

function walkAssignment(judge: JudgeContext, { index, value, name }: Assignment, place: WalkState): void {
  if (!/^[A-Za-z_]\w*$/.test(name) || (index && !/^\d+$/.test(index.text))) {
    judge.raise('command.unclear', `the subscript of ${JSON.stringify(name.slice(0, 40))} is evaluated; use a plain number`)
  }
  if (index) walkWord(judge, index, place)
  for (const word of value.type === 'Word' ? [value] : value.elements) {
    walkWord(judge, word, place)
    if (value.type === 'ArrayValue' && word.text.startsWith('['))
      judge.raise('command.unclear', 'array elements with subscripts are not followed')
  }
  if (value.type === 'Word' && holdsCommand(name)) searchSettings(judge, assigned(judge, { name, value }, place).texts, place)
}

/**
 * Judges redirections: where they read and write, and what they feed to the command.
 * @returns what the command then reads from its standard input
 */
function walkRedirections(judge: JudgeContext, redirects: readonly Redirection[], place: WalkState): Feed {
  return redirects.reduce((feed, one) => walkRedirection(judge, one, { ...place, feed }), place.feed)
}

function walkRedirection(judge: JudgeContext, node: Redirection, place: WalkState): Feed {
  const toInput = !node.descriptor || (node.descriptor.type === 'FileDescriptor' && node.descriptor.value === 0)
  if (node.type === 'HereDoc') {
    const body = bodyOf(node)
    walkForm(judge, body, place)
    return toInput ? fed(argOf(body, undefined, { judge, place }), '') : place.feed
  }
  const arg = target(judge, node.target, place)
  if (!arg) return place.feed
  if (node.type === 'HereString') return toInput ? fed(arg, '\n') : place.feed
  checkTarget(judge, node, arg, place)
  return node.operator.startsWith('<') && toInput ? { ...anyFeed, downloads: arg.downloads } : place.feed
}

function target(judge: JudgeContext, word: Word | undefined, place: WalkState): Arg | undefined {
  if (!word) return
  walkWord(judge, word, place)
  const [arg, ...more] = argsOf(word, { judge, place })
  if (more.length > 0) judge.raise('command.unclear', 'a redirection needs exactly one file')
  return arg
}

function fed(arg: Arg, end: string): Feed {
  const [text = ''] = arg.texts
  return { kind: arg.kind === 'literal' && arg.texts.length === 1 ? 'literal' : 'unknown', text: text + end, downloads: arg.downloads }
}

function checkTarget(judge: JudgeContext, { operator }: Redirect, arg: Arg, place: WalkState): undefined {
  if (arg.word && arg.globs.includes(arg.word)) return judge.raise('command.unclear', 'a redirection needs a file name, not a pattern')
  if (operator.endsWith('&') && arg.texts.every((text) => /^(\d+-?|-)$/.test(text))) return
  if (operator === '<&') return judge.raise('command.unclear', 'which descriptor is read is known only when it runs')
  if (operator === '>&' && !isTwiceTheSame(arg))
    judge.raise('command.unclear', 'bash reads the word after >& twice, and runs what is quoted in it; write &> instead')
  checkPath(judge, arg, operator === '<' ? 'read' : 'write', place, 'redirection')
}

/** Bash expands the word of `>&word` once more as a file name, after its quotes were removed: `>& 'a$(rm x)'` runs rm. */
function isTwiceTheSame({ kind, texts }: Arg): boolean {
  return kind === 'number' || (kind === 'literal' && texts.every((text) => /^[\w./+:@%,-]+$/.test(text)))
}
