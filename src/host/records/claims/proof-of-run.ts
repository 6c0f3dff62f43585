/** Marks what the answer of a run claims by what its journal, receipts and change sets prove. */

import { errorText } from '../../../kit/errors.ts'
import { isObject } from '../../../kit/json.ts'
import type { JournalEntry } from '../../../memory/journal/journal-entry.ts'
import type { Memory } from '../../../memory/memory.ts'
import { progressAfter } from '../../../runtime/behaviours/wiggum/progress.ts'
import type { Change } from '../../../runtime/changes.ts'
import type { CheckFinding, Progress, Proposal, ToolOutcome } from '../../../runtime/event.ts'
import { changesOf, dropOutcome } from '../../../runtime/outcome.ts'
import type { CheckPort } from '../../../runtime/port.ts'
import { textOf } from '../../../runtime/project.ts'
import { consequenceIn, externalOf } from '../../../runtime/replay/external-entry.ts'
import { programRuns } from '../../../security/command/program-runs.ts'
import type { SetSummary } from '../../../workspace/changes/contract.ts'
import type { ChangeStore } from '../../../workspace/changes/store.ts'
import type { Setup } from '../../api.ts'
import type { ClaimMark } from '../../contract/claim-mark.ts'
import { realFolder } from '../../setup/workspace-folder.ts'
import { bindClaims } from './bind-claims.ts'
import type { AnswerClaim, Fact, FileOp } from './contract.ts'
import { distinctClaims, findClaims } from './find-claims.ts'

type ProofOptions = {
  readonly setup: Pick<Setup, 'config' | 'paths' | 'log'>
  readonly journal: Pick<Memory['journal'], 'events' | 'runs'>
  readonly runId: string
  readonly conversationId: string
  /** Absent: the last reply of the run. */
  readonly answer?: string
  /** Finds further claims besides those of the grammar. Its failure leaves the grammar's. */
  readonly further?: ((answer: string) => Promise<readonly AnswerClaim[]>) | undefined
}

type Proving = Omit<ProofOptions, 'runId' | 'answer'> & {
  readonly runId: () => string | undefined
  readonly checks?: CheckPort | undefined
}

/** Adds the check of the answer that the journal has as the run's last. It is not on the list, because it ends no wiggum run. */
export function withProof({ checks, runId, ...of }: Proving): CheckPort {
  return {
    list: checks?.list ?? [],
    async run(check, signal) {
      if (checks?.list.some(({ name }) => name === check.name)) return checks.run(check, signal)
      try {
        const marks = await marksOfRun({ ...of, runId: runId() ?? '' })
        return { pass: marks.every(({ state }) => state === 'proved'), evidence: evidenceOf(marks) }
      } catch (error) {
        return { pass: false, evidence: `the claims could not be checked: ${errorText(error)}`, notRun: true }
      }
    },
  }
}

/** Earlier turns of the conversation that may have proved a claim. */
const turnsBack = 3
/** A larger change set is not read: it counts as changes of unknown files. */
const mostChanges = 2000

/** @returns nothing for an answer without claims. @throws the system's error when the store of change sets cannot be read */
export async function marksOfRun(options: ProofOptions): Promise<readonly ClaimMark[]> {
  const { setup, journal, runId, conversationId } = options
  if (setup.config.proofOfDone === 'off') return []
  const entries = journal.events(runId)
  const claims = await claimsOf(options.answer ?? answerIn(entries), options)
  if (claims.length === 0) return []
  const { openChanges } = await import('../../transactions/open-changes.ts')
  const lazy: { store?: ChangeStore; sets?: readonly SetSummary[] } = {}
  const changesOfCall = (run: string, call: string) => {
    lazy.store ??= openChanges(setup, realFolder(setup.config.workspaceDir))
    lazy.sets ??= lazy.store.list()
    const set = lazy.sets.find(({ about }) => about.run === run && about.call === call)
    return changesIn(lazy.store, set)
  }
  const facts = turnFacts(journal, { runId, entries, changesOfCall })
  const marks = bindClaims(claims, facts)
  if (marks.every(({ state }) => state !== 'unproved')) return marks
  const runs = journal.runs({ limit: turnsBack, before: runId, conversation: conversationId }).toReversed()
  const earlier = runs.flatMap((run) => factsOf({ runId: run.runId, entries: journal.events(run.runId), changesOfCall }))
  return bindClaims(claims, [...earlier.map((fact): Fact => ({ ...fact, earlier: true })), ...facts])
}

async function claimsOf(answer: string, { further, setup }: Pick<ProofOptions, 'further' | 'setup'>): Promise<readonly AnswerClaim[]> {
  const claims = findClaims(answer)
  if (further === undefined || answer.trim() === '') return claims
  try {
    return distinctClaims([...claims, ...(await further(answer))])
  } catch (error) {
    setup.log('warn', 'the model found no claims', { why: errorText(error) })
    return claims
  }
}

/** Returns a line for each claim that is not proved. */
export function evidenceOf(marks: readonly ClaimMark[]): string {
  return marks.flatMap(({ state, claim, why }) => (state === 'proved' ? [] : [`"${claim}" is ${state}: ${why}`])).join('\n')
}

function answerIn(entries: readonly JournalEntry[]): string {
  const last = entries.findLast(({ type }) => type === 'model.done')
  const event = last && externalOf(last)
  return event?.type === 'model.done' && event.proposals.length === 0 ? textOf(event.parts) : ''
}

type Source = {
  readonly runId: string
  readonly entries: readonly JournalEntry[]
  /** Undefined when the changes of a call are not known. */
  changesOfCall(runId: string, callId: string): { readonly changes: readonly Change[]; readonly denied: boolean } | undefined
}

/** A run that continues another one belongs to the same turn. */
function turnFacts(journal: ProofOptions['journal'], source: Source, depth = 0): readonly Fact[] {
  const start = source.entries.map(externalOf).find((event) => event?.type === 'run.start')
  const before = start?.type === 'run.start' ? start.continues?.run : undefined
  const own = factsOf(source)
  if (before === undefined || depth > 5) return own
  return [...turnFacts(journal, { ...source, runId: before, entries: journal.events(before) }, depth + 1), ...own]
}

type Ended = {
  readonly id: string
  readonly status: ToolOutcome['status']
  readonly metadata?: unknown
  readonly receipt?: string | undefined
}

function factsOf({ runId, entries, changesOfCall }: Source): readonly Fact[] {
  const calls = new Map<string, Proposal>()
  const jobs = new Map<string, string>()
  const facts: Fact[] = []
  let progress: Progress | null = null
  const propose = (proposals: readonly Proposal[] = []) => {
    for (const each of proposals) calls.set(each.call.id, each)
  }

  function noteOutcome({ id, status, metadata, receipt }: Ended): void {
    const proposal = calls.get(id)
    if (!proposal) return
    const { name, input } = proposal.call
    const known = isObject(metadata) ? metadata : {}
    const exit = typeof known.exitCode === 'number' ? known.exitCode : undefined
    const job = typeof known.job === 'string' ? known.job : undefined
    const denied = status === 'denied'
    const path = typeof input.path === 'string' ? input.path : '.'
    const command = name === 'shell' ? String(input.command) : name === 'shell_output' ? jobs.get(job ?? '') : undefined
    if (job !== undefined && name === 'shell') jobs.set(job, String(input.command))
    if (command !== undefined && (job === undefined || exit !== undefined))
      noteCommand(id, command, { exit, denied, receipt, metadata: known })
    else if (/^file_(?:write|edit|delete)$/.test(name)) {
      const op = name === 'file_delete' ? 'deleted' : known.created === true ? 'created' : 'updated'
      if (status !== 'failed') facts.push({ type: 'change', text: path, runs: [], op, denied, receipt })
    } else if (status === 'allowed' && command === undefined) {
      const { risk, summary } = proposal.judgement
      const acted = { type: 'command', text: summary, runs: [], exit: 0, receipt } as const
      facts.push(risk === 'low' ? { type: 'read', text: path, runs: [], receipt } : acted)
    }
  }

  function noteCommand(
    id: string,
    text: string,
    { metadata, denied, exit, receipt }: Pick<Fact, 'exit' | 'denied' | 'receipt'> & { readonly metadata: object },
  ) {
    const runs = programRuns(text)
    const fate = changesOf(metadata)
    const set = fate === undefined || fate === 'none' || fate === 'direct' ? undefined : changesOfCall(runId, id)
    const direct = !denied && fate !== 'none' && fate !== 'dropped' && set === undefined
    facts.push({ type: 'command', text, runs, exit, denied: denied && exit === undefined, direct, receipt })
    for (const change of set?.changes ?? [])
      facts.push({ type: 'change', text: change.path, runs, op: opOf(change), denied: set?.denied, receipt })
  }

  /** The last check of a wiggum run stands for the program that it names, on the tree that it saw. */
  function noteCheck({ pass, exit, tree, notRun }: CheckFinding): void {
    const check = progress?.stage === 'checking' ? progress.limits.checks[progress.passed] : undefined
    const ended = { exit: pass ? 0 : exit || 1, tree }
    if (check && !notRun) facts.push({ type: 'command', text: check.name, runs: check.tier < 2 ? programRuns(check.name) : [], ...ended })
  }

  for (const entry of entries) {
    const event = externalOf(entry) ?? consequenceIn(entry)
    const receipt = isObject(entry.body) && typeof entry.body.receipt === 'string' ? entry.body.receipt : undefined
    if (event?.type === 'run.start') propose(event.continues?.proposals)
    else if (event?.type === 'model.done' || event?.type === 'judged') propose(event.proposals)
    else if (event?.type === 'tool.done') noteOutcome({ receipt, ...event.outcome, id: event.id })
    else if (event?.type === 'deny') noteOutcome({ id: event.id, status: 'denied', receipt })
    else if (event?.type === 'drop') noteOutcome({ ...dropOutcome(event), id: event.id, receipt })
    else if (event?.type === 'check.done') noteCheck(event)
    if (event) progress = progressAfter(progress, event)
  }
  return facts
}

function changesIn(store: Pick<ChangeStore, 'show'>, set: SetSummary | undefined) {
  if (set === undefined || set.count > mostChanges) return undefined
  const changes = store.show(set.id)?.changes
  return changes && { changes, denied: set.state === 'pending' || set.state === 'undone' }
}

function opOf({ before, after }: Change): FileOp {
  if (before === undefined) return 'created'
  return after === undefined ? 'deleted' : 'updated'
}
