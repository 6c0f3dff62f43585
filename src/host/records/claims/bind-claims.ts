/** Binds each claim to the fact that proves it, makes it stale or contradicts it. */

import type { CheckKind, ProgramRun } from '../../../security/command/program-runs.ts'
import type { ClaimMark } from '../../contract/claim-mark.ts'
import type { AnswerClaim, ClaimedOp, Fact } from './contract.ts'

type Finding = Pick<ClaimMark, 'state' | 'why' | 'receipt' | 'exit'>

/** Pure. `facts` in the order in which they happened. */
export function bindClaims(claims: readonly AnswerClaim[], facts: readonly Fact[]): readonly ClaimMark[] {
  return claims.map((claim) => ({ kind: claim.kind, claim: claim.text, ...findingOf(claim, facts) }))
}

const deeds = { tests: 'ran the tests', build: 'built', types: 'checked types', lint: 'ran a linter' } as const

function findingOf(claim: AnswerClaim, facts: readonly Fact[]): Finding {
  switch (claim.kind) {
    case 'file':
      return fileFinding(claim, facts)
    case 'git':
      return runFinding(facts, { fits: ({ git }) => git === claim.op, nothing: `did a ${claim.op}` })
    case 'installed': {
      const { name } = claim
      const fits = ({ installs, text }: ProgramRun) => installs !== undefined && (!name || installs.length === 0 || isNamed(text, name))
      return runFinding(facts, { fits, nothing: `installed ${name ?? 'packages'}` })
    }
    case 'ran':
      return ranFinding(claim.command, facts)
    case 'verified':
      return verifiedFinding(facts)
    case 'done':
      return doneFinding(claim.needs, facts)
    case 'clean':
      return runFinding(facts, { isOfTree: true, fits: ({ checks }) => checks.length > 0, nothing: 'ran a check' })
    default: {
      const { kind } = claim
      return runFinding(facts, { isOfTree: true, fits: ({ checks }) => checks.includes(kind), nothing: deeds[kind] })
    }
  }
}

function finding(state: ClaimMark['state'], why: string, { receipt, exit }: Pick<Fact, 'receipt' | 'exit'> = {}): Finding {
  return { state, why, ...(receipt === undefined ? {} : { receipt }), ...(exit === undefined ? {} : { exit }) }
}

const never = (what: string) => finding('unproved', `nothing in this turn ${what}`)

function denialOf(fact: Fact): Finding {
  const why = fact.type === 'change' ? `the change of ${fact.text} was denied` : `${inTicks(fact)} was denied and never ran`
  return finding('contradicted', why, fact)
}

/** `isOfTree`: a later change makes the proof stale. */
type Wanted = { readonly nothing: string; readonly isOfTree?: true; fits(run: ProgramRun): boolean }

/** Finds the last run that decides: the exit code of a pipeline, say, speaks only for its last program. */
function runFinding(facts: readonly Fact[], { nothing, isOfTree, fits }: Wanted): Finding {
  let doubt: Finding | undefined
  for (const [index, fact] of [...facts.entries()].reverse()) {
    const run = fact.type === 'command' ? fact.runs.findLast(fits) : undefined
    if (!run) continue
    if (fact.denied) doubt ??= denialOf(fact)
    else if (fact.exit !== 0) return failureOf(fact, run)
    else if (!run.decides) doubt ??= finding('unproved', `the exit code of ${inTicks(fact)} is not that of ${run.text}`, fact)
    else return isOfTree ? freshness(facts, index, fact) : finding('proved', `${inTicks(fact)} exited 0`, fact)
  }
  return doubt ?? never(nothing)
}

function failureOf(fact: Fact, run?: ProgramRun): Finding {
  const why = `the last run of ${inTicks(fact)} ${fact.exit === undefined ? 'did not end' : `exited ${fact.exit}`}`
  const others = fact.runs.filter((each) => each !== run && !/^(?:cd|export|mkdir|source|\.|echo|pwd|true)\b/.test(each.text))
  const isSure = run === undefined || others.length === 0 || run === fact.runs.at(-1)
  return isSure ? finding('contradicted', why, fact) : finding('unproved', `${why}, perhaps in another part`, fact)
}

function freshness(facts: readonly Fact[], index: number, fact: Fact): Finding {
  const later = changedAfter(facts, index)
  if (later) return finding('stale', `${later} after ${inTicks(fact)} ran`, fact)
  if (fact.earlier) return finding('stale', `${inTicks(fact)} ran in an earlier turn, and files may have changed since`, fact)
  return finding('proved', `${inTicks(fact)} exited 0 and nothing changed since`, fact)
}

/** Returns the first change after the fact as the beginning of a sentence. */
function changedAfter(facts: readonly Fact[], index: number): string | undefined {
  const tree = facts[index]?.tree
  for (const fact of facts.slice(index + 1)) {
    if (tree !== undefined && (fact.tree ?? tree) !== tree) return `${inTicks(fact)} saw other files`
    if (isChange(fact)) return `${fact.text} changed`
    const isSafe = fact.denied || (fact.runs.every(isCheckOnly) && !/(?:^|[^&2])>(?!&)/.test(fact.text))
    if (fact.direct && !isSafe) return `${inTicks(fact)} may have changed files`
  }
}

/** Tells whether a fact changes what checks look at; the output of a check, and what git keeps, do not. */
function isChange({ type, denied, text, runs }: Fact): boolean {
  if (type !== 'change' || denied || /(^|\/)\.git\//.test(text)) return false
  return !(runs.some(({ checks }) => checks.length > 0) && runs.every(isCheckOnly))
}

const readers =
  /^(?:cd|ls|cat|head|tail|grep|rg|find|pwd|echo|wc|diff|stat|test|\[|true|which|env|git (?:status|diff|log|show|add|commit|push|tag|rev-parse|branch)|gh)\b/

function isCheckOnly({ checks, edits, text }: ProgramRun): boolean {
  return (checks.length > 0 && !edits) || readers.test(text)
}

function ranFinding(command: string, facts: readonly Fact[]): Finding {
  const known = facts.filter(({ type, text }) => type === 'command' && isNamed(text, command))
  const ran = known.findLast((fact) => !fact.denied)
  if (ran) return finding('proved', `${inTicks(ran)} ran`, ran)
  const last = known.at(-1)
  return last ? denialOf(last) : never(`ran ${inTicks({ text: command })}`)
}

/** Tells whether the words of the claim occur in the command, in their order. */
function isNamed(command: string, claim: string): boolean {
  const words = (text: string) => text.replace(/\b(npm|pnpm|yarn) run(?:-script)? /g, '$1 ').split(/[\s;&|()"'=]+/)
  const bare = (word: string) => word.replace(/^\.\//, '')
  const isSameWord = (one: string, word: string) => bare(one) === bare(word) || one.endsWith(`/${word}`) || one.startsWith(`${word}@`)
  let rest: readonly string[] = words(command)
  for (const word of words(claim)) {
    const at = rest.findIndex((one) => isSameWord(one, word))
    if (at < 0) return false
    rest = rest.slice(at + 1)
  }
  return true
}

function verifiedFinding(facts: readonly Fact[]): Finding {
  const index = facts.findLastIndex(({ type, exit, denied, earlier }) => !earlier && !denied && (type === 'read' || exit === 0))
  const fact = facts[index]
  if (!fact) return never('ran a command that ended well or read a file')
  const what = fact.type === 'read' ? `${fact.text} was read` : `${inTicks(fact)} exited 0`
  const later = changedAfter(facts, index)
  return later ? finding('stale', `${later} after ${what}`, fact) : finding('proved', what, fact)
}

function doneFinding(needs: 'change' | 'effect', all: readonly Fact[]): Finding {
  const facts = all.filter(({ earlier }) => !earlier)
  const last = facts.findLastIndex(isChange)
  for (const kind of Object.keys(deeds) as CheckKind[]) {
    const isCheck = ({ type, denied, runs }: Fact) => type === 'command' && !denied && runs.some(({ checks }) => checks.includes(kind))
    const run = facts.slice(last + 1).findLast(isCheck)
    if (run && run.exit !== 0) return failureOf(run)
  }
  const change = facts[last]
  if (change) return finding('proved', `${change.text} changed, and no check failed after that`, change)
  const ended = facts.findLast(({ exit, denied, direct }) => exit === 0 && !denied && (needs === 'effect' || direct))
  if (ended) return finding('proved', `${inTicks(ended)} exited 0`, ended)
  const refused = facts.findLast((fact) => fact.denied)
  if (refused) return denialOf(refused)
  return never(needs === 'change' ? 'changed a file' : 'changed a file or ran a command that ended well')
}

function fileFinding({ path, op }: Extract<AnswerClaim, { kind: 'file' }>, facts: readonly Fact[]): Finding {
  const changes = facts.filter(({ type, text, from = text }) => type === 'change' && (isSame(text, path) || isSame(from, path)))
  const applied = changes.filter((change) => !change.denied)
  const [fitting, last, refused] = [applied.findLast((change) => fits(change, op)), applied.at(-1), changes.at(-1)]
  const isGone = last?.op === 'deleted' && op !== 'deleted' && op !== 'any'
  if (fitting && !isGone) return finding('proved', `${fitting.text} was ${fitting.op}`, fitting)
  if (last) return finding('contradicted', `${last.text} was ${last.op}, not ${op === 'saved' ? 'updated' : op}`, last)
  if (refused) return denialOf(refused)
  // Changes outside of the workspace, and of commands on the workspace itself, are in no change set.
  const isOutside = /^[/~]/.test(path)
  const base = path.split('/').findLast((part) => part !== '') ?? path
  const named = facts.findLast(
    ({ text, direct }) => (direct || isOutside) && text.includes(base) && !/^(?:cat|ls|head|grep|rg) /.test(text),
  )
  if (named?.denied) return denialOf(named)
  if (named?.exit === 0) return finding('proved', `${inTicks(named)} names it and exited 0`, named)
  const isHidden = isOutside || facts.some(({ direct }) => direct)
  return finding(isHidden ? 'unproved' : 'contradicted', `nothing in this turn changed ${path}`)
}

function isSame(path: string, claimed: string): boolean {
  const bare = claimed.replace(/^(?:\.\/)+/, '').replace(/\/$/, '')
  return path === bare || path.endsWith(`/${bare}`) || bare.endsWith(`/${path}`) || (claimed.endsWith('/') && path.startsWith(`${bare}/`))
}

function fits({ op = 'updated' }: Fact, claimed: ClaimedOp): boolean {
  if (claimed === 'saved' || claimed === 'updated') return op === 'created' || op === 'updated'
  return claimed === 'any' || op === claimed || (claimed === 'renamed' && op === 'created')
}

function inTicks({ text }: Pick<Fact, 'text'>): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return `\`${line.length > 60 ? `${line.slice(0, 59)}…` : line}\``
}
