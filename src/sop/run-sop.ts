/**
 * Runs a procedure from its first step to its end, or until it waits for a person. Each end of a step is on disk before the next step
 * begins, so that any process can continue the run where another one left it.
 */

import type { Host, Setup } from '../host/api.ts'
import type { HostRecords } from '../host/contract/records-api.ts'
import { createHomePoll } from '../host/events/home-poll.ts'
import { FailureError } from '../host/failure.ts'
import { realFolder } from '../host/setup/workspace-folder.ts'
import { createEngine } from '../kernel/engine.ts'
import { errorText } from '../kit/errors.ts'
import type { JsonObject } from '../kit/json.ts'
import { createId } from '../kit/sha256.ts'
import { didYouMean, quote } from '../kit/text.ts'
import { thisProcess } from '../memory/journal/process-owner.ts'
import type { SopRunRow, SopStepRow, SopStore } from '../memory/journal/sop-store.ts'
import type { SopFile } from './find-sops.ts'
import { type DoubtAnswer, runTurn, type StepOutcome, type StepTurn, type StepTurns } from './run-step.ts'
import { type Condition, type EndState, readSop, type Sop, type Step } from './sop-file.ts'
import { type SopEvent, sopProgram } from './sop-program.ts'
import { fill, type Reference, referencesIn } from './template.ts'

export type SopRun = SopRunRow & { readonly steps: readonly SopStepRow[] }

/** The chat that began a run, if one did: it gets the questions and the answer. */
export type RunPlace = Pick<SopRunRow, 'channel' | 'recipient'>

export type SopTurns = Omit<StepTurns, 'records' | 'host'> & {
  readonly host: Pick<Host, 'conversation' | 'setup'>
  readonly records: Pick<HostRecords, 'runs' | 'sops'>
  /** Asks the person at this terminal; resolves when the question is answered, or they gave no answer. */
  readonly ask?: (question: { readonly id: string; readonly prompt: string }) => Promise<void>
  /** Called with each step that begins or ends. */
  readonly tell?: (step: SopStepRow) => void
  /** Aborted: the steps under way end, and the run continues later. */
  readonly signal?: AbortSignal
  readonly answer?: DoubtAnswer | undefined
  /** A run that the signal stopped continues by itself when another process of this kind starts. */
  readonly stays?: true
}

const dayMs = 86_400_000
/** How often a run looks whether another process cancelled it. */
const lookMs = 500

/** Records a run with this version of the file. `owner`: absent, this process runs it. @throws FailureError `usage` for wrong inputs */
export function beginSop(
  { sop, text, digest, name }: SopFile,
  given: {
    readonly setup: Setup
    readonly records: Pick<HostRecords, 'sops'>
    readonly inputs: SopRunRow['inputs']
    readonly by: string
    readonly owner?: string
    readonly place?: RunPlace | undefined
  },
): SopRunRow {
  const inputs = checkInputs(sop, given.inputs)
  const { runs } = given.records.sops
  const id = createId('sop', crypto.getRandomValues(new Uint8Array(10)))
  const workspace = realFolder(given.setup.config.workspaceDir)
  const { channel, recipient } = given.place ?? { channel: null, recipient: null }
  runs.add({ id, name, digest, workspace, inputs, startedBy: given.by, owner: given.owner ?? thisProcess(), channel, recipient }, text)
  return existingRun(given.records, id)
}

function checkInputs(sop: Sop, given: SopRunRow['inputs']): SopRunRow['inputs'] {
  const known = Object.keys(sop.inputs)
  const unknown = Object.keys(given).find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new FailureError(
      'usage',
      `${sop.name} has no input ${quote(unknown)}${didYouMean(unknown, known) || `; it has: ${known.join(', ') || 'none'}`}`,
    )
  return Object.fromEntries(
    Object.entries(sop.inputs).map(([name, input]) => {
      const value = given[name] ?? input.default
      if (value === undefined) throw new FailureError('usage', `${sop.name} needs the input ${name}: --input ${name}=…`)
      return [name, value]
    }),
  )
}

/** Finds a run by its id, a unique beginning of it, or "last". @throws FailureError `error` */
export function existingRun({ sops }: Pick<HostRecords, 'sops'>, ref: string): SopRunRow {
  const known = sops.runs.find(ref)
  if (known) return known
  const all = sops.runs.list({ limit: 100_000 })
  const begun = ref === 'last' ? all.slice(0, 1) : all.filter(({ id }) => ref.length > 4 && id.startsWith(ref))
  if (begun[0] && begun.length === 1) return begun[0]
  throw new FailureError('error', `no run of a procedure ${quote(ref)}; see: braidclaw sop status`)
}

export function showRun({ sops }: Pick<HostRecords, 'sops'>, ref: string): SopRun {
  const run = existingRun({ sops }, ref)
  return { ...run, steps: sops.runs.steps(run.id) }
}

/** Returns what a chat gets when a run has ended: its outputs, without any the last thing that a step said, or why it failed. */
export function answerOfRun({ name, id, state, why, outputs, steps }: SopRun): string {
  if (state !== 'done') return `[${name} ${state}${why === '' ? '' : `: ${why}`}; see: braidclaw sop status ${id}]`
  const named = Object.entries(outputs)
  if (named.length > 1) return named.map(([key, text]) => `${key}:\n${text}`).join('\n\n')
  return (named[0]?.[1] ?? steps.findLast(({ output }) => output !== '')?.output) || `[${name} is done]`
}

async function versionOf({ sops }: Pick<HostRecords, 'sops'>, { digest, id }: SopRunRow): Promise<Sop> {
  const text = sops.runs.textOf(digest)
  if (text === undefined)
    throw new FailureError('integrity', `the version of the procedure that ${id} began with is gone from the database`)
  // It was checked when the run began; a tool that has vanished since is refused by the gate.
  return (await readSop({ text, tools: new Map() })).sop
}

/** Cancels a run; a process that runs it ends its steps. @throws FailureError `usage` when it has ended */
export function cancelRun(records: Pick<HostRecords, 'sops'>, ref: string): SopRunRow {
  const run = existingRun(records, ref)
  if (run.ended !== null) throw new FailureError('usage', `${run.id} has ended already: ${run.state}`)
  const { runs, close } = records.sops
  runs.transaction(() => {
    for (const { question } of runs.steps(run.id)) if (question !== null) close(question, 'the run was cancelled')
    runs.setState(run.id, 'cancelled')
  })
  records.sops.written()
  return existingRun(records, run.id)
}

/** Lets the process that serves procedures continue a run. @throws FailureError `usage` when it has ended, or is under way */
export function requeueRun(records: Pick<HostRecords, 'sops'>, ref: string): SopRunRow {
  const { id } = existingRun(records, ref)
  assertTaken(records, id, 'queued')
  records.sops.written()
  return existingRun(records, id)
}

function assertTaken(records: Pick<HostRecords, 'sops'>, id: string, owner: string): void {
  if (records.sops.runs.take(id, owner)) return
  const run = existingRun(records, id)
  const why = run.state === 'running' ? `is under way in process ${run.owner.split(' ')[0]}` : `has ended: ${run.state}`
  throw new FailureError('usage', `${id} ${why}`)
}

/** Returns the text for a reference; empty for a step without an output. */
function reader(run: SopRunRow, steps: readonly SopStepRow[]): (reference: Reference) => string {
  const outputs = new Map(steps.map(({ step, output }) => [step, output]))
  return ({ kind, name }) => (kind === 'inputs' ? (run.inputs[name] ?? '') : (outputs.get(name) ?? ''))
}

/** Runs or continues a run that this process has taken. */
export async function runSop(ref: string, turns: SopTurns): Promise<SopRun> {
  const { sops } = turns.records
  const { id } = existingRun(turns.records, ref)
  assertTaken(turns.records, id, thisProcess())
  const run = existingRun(turns.records, id)
  try {
    await drive(run, await versionOf(turns.records, run), turns)
  } catch (error) {
    sops.runs.setState(id, 'running', { why: errorText(error) })
    throw error
  } finally {
    sops.written()
  }
  return showRun(turns.records, id)
}

async function drive(run: SopRunRow, sop: Sop, turns: SopTurns): Promise<void> {
  const { runs } = turns.records.sops
  const stop = new AbortController()
  const stopAll = () => stop.abort()
  turns.signal?.addEventListener('abort', stopAll, { once: true })
  const isCancelled = () => runs.find(run.id)?.state === 'cancelled'
  const endLook = createHomePoll(lookMs)(() => isCancelled() && stopAll())
  const state = createState(run, sop, turns)
  const underWay = new Map<string, Promise<void>>()
  try {
    if (turns.signal?.aborted) stopAll()
    for (let due = state.begin(); state.finished() === undefined; due = state.due()) {
      for (const step of due) {
        const work = perform(step, { run, sop, turns, state, signal: stop.signal })
        underWay.set(
          step.id,
          work.then((outcome) => state.end(step, outcome)).finally(() => void underWay.delete(step.id)),
        )
      }
      if (underWay.size === 0) break
      await Promise.race(underWay.values())
    }
    await Promise.all(underWay.values())
    if (!isCancelled()) state.rest()
  } finally {
    stopAll()
    await Promise.allSettled(underWay.values())
    endLook()
    turns.signal?.removeEventListener('abort', stopAll)
  }
}

type RunState = ReturnType<typeof createState>

/** Keeps the program of a run and its rows in step: what the program decides is on disk before it has an effect. */
function createProgress(run: SopRunRow, steps: readonly Step[], runs: SopStore) {
  const rows = new Map(runs.steps(run.id).map((row) => [row.step, row]))
  const engine = createEngine<SopEvent>({ threads: sopProgram(steps), maxSelections: 2 * steps.length + 10 })
  const state: { requested: string[]; finish?: 'done' | 'failed' | 'cancelled'; place: number } = { requested: [], place: 0 }

  function advance(event?: SopEvent): void {
    if (event) engine.send(event)
    engine.superstep((selected) => {
      if (selected.type === 'step') state.requested.push(selected.id)
      if (selected.type === 'finish') state.finish = selected.state
    })
  }

  function put(step: string, change: Partial<SopStepRow>): SopStepRow {
    const row = { ...(rows.get(step) ?? { ...freshRow, step }), ...change }
    runs.putStep(run.id, row)
    rows.set(step, row)
    return row
  }

  /** A budget that is spent ends the run, even where a failure may not. */
  function settled({ step, code }: SopStepRow, ended: EndState): void {
    if (code === 'budget') advance({ type: 'cancel' })
    advance({ type: 'settled', id: step, state: ended })
  }

  return {
    rows,
    put,
    /** Takes the next step that the program requests. */
    next: () => state.requested.shift(),
    finished: () => state.finish,
    settle(step: string, change: Partial<SopStepRow> & { readonly state: EndState }): SopStepRow {
      state.place += 1
      const row = put(step, { question: null, ...change, place: state.place })
      settled(row, change.state)
      return row
    },
    /** Brings the program to where the rows are. */
    catchUp(): void {
      advance()
      for (const row of [...rows.values()]) {
        const { state: ended, place } = row
        if (place === null || ended === 'running' || ended === 'waiting' || ended === 'asked') continue
        state.place = place
        settled(row, ended)
      }
      state.requested = state.requested.filter((id) => (rows.get(id)?.place ?? null) === null)
    },
  }
}

function createState(run: SopRunRow, { steps, outputs }: Sop, { records, tell = () => {}, stays }: SopTurns) {
  const { runs } = records.sops
  const { rows, put, settle, next, finished, catchUp } = createProgress(run, steps, runs)
  const byId = new Map(steps.map((step) => [step.id, step]))

  /** Skips the steps whose condition does not hold. @returns the others, which begin */
  function due(): readonly Step[] {
    const begin: Step[] = []
    const skipped: SopStepRow[] = []
    runs.later(() => {
      for (let id = next(); id !== undefined; id = next()) {
        const step = byId.get(id)
        if (step?.when && !rows.has(id) && !holds(step.when, rows, run)) skipped.push(settle(id, { state: 'skipped' }))
        else if (step) begin.push(step)
      }
      for (const { id } of begin) if (!rows.has(id)) put(id, { state: 'running' })
    })
    const finish = finished()
    if (finish !== undefined) {
      const failed = steps.find(({ id, onFailure }) => {
        const row = rows.get(id)
        return row?.state === 'failed' && (onFailure === 'abort' || row.code === 'budget')
      })
      const { why, code } = rows.get(failed?.id ?? '') ?? {}
      const read = reader(run, [...rows.values()])
      if (failed) runs.setState(run.id, 'failed', { why: `${failed.id}: ${why}`, code })
      else
        runs.setState(run.id, finish, {
          outputs: Object.fromEntries(Object.entries(outputs).map(([name, text]) => [name, fill(text, read)])),
        })
    }
    for (const row of skipped) tell(row)
    return begin
  }

  return {
    row: (id: string) => rows.get(id),
    all: () => [...rows.values()],
    put,
    finished,
    due,
    begin(): readonly Step[] {
      catchUp()
      return due()
    },
    end({ id }: Step, outcome: StepOutcome): void {
      const common = { conversationId: outcome.conversationId ?? null }
      if (outcome.state === 'stopped') put(id, common)
      else if (outcome.state === 'waiting') tell(put(id, { ...common, state: 'waiting', question: outcome.question }))
      else if (outcome.state === 'asked') tell(put(id, { ...common, state: 'asked', why: outcome.why }))
      else {
        const { state: ended, output, why, code = '' } = outcome
        tell(runs.later(() => settle(id, { ...common, state: ended, output, why, code })))
      }
    },
    /** Records that nothing is under way any more. */
    rest(): void {
      if (finished() !== undefined) return
      const states = [...rows.values()].map((row) => row.state)
      const isStopped = states.includes('running')
      const resting = isStopped ? 'running' : states.includes('asked') ? 'asked' : 'waiting'
      runs.setState(run.id, resting, { owner: isStopped && stays ? thisProcess() : '' })
    },
  }
}

const freshRow: Omit<SopStepRow, 'step'> = {
  ...{ attempt: 1, state: 'running', place: null, output: '', why: '', conversationId: null, question: null, code: '' },
}

function holds({ of, test, not }: Condition, rows: ReadonlyMap<string, SopStepRow>, run: SopRunRow): boolean {
  const row = 'step' in of ? rows.get(of.step) : undefined
  const text = 'input' in of ? (run.inputs[of.input] ?? '') : (row?.output ?? '')
  const is = 'state' in test ? row?.state === test.state : 'contains' in test ? text.includes(test.contains) : text === test.equals
  return is !== not
}

type Performing = {
  readonly run: SopRunRow
  readonly sop: Sop
  readonly turns: SopTurns
  readonly state: RunState
  readonly signal: AbortSignal
}

/** Runs a step, again after a failure if it may. Rejects only when the record cannot be written. */
async function perform(step: Step, context: Performing): Promise<StepOutcome> {
  for (;;) {
    const outcome = await attempt(step, context)
    const { attempt: count = 1 } = context.state.row(step.id) ?? {}
    if (outcome.state !== 'failed' || outcome.code === 'budget' || count > step.retry || context.signal.aborted) return outcome
    context.turns.records.sops.runs.later(() => context.state.put(step.id, { attempt: count + 1, question: null }))
  }
}

async function attempt(step: Step, context: Performing): Promise<StepOutcome> {
  const { run, sop, turns, state, signal } = context
  const { sops } = turns.records
  const row = state.row(step.id) ?? { ...freshRow, step: step.id }
  const read = reader(run, state.all())
  turns.tell?.(row)
  if (step.kind === 'approval') return approve(step, { ...context, prompt: fill(step.prompt, read) })
  const missing = sourcesOf(step).find((id) => state.row(id)?.state !== 'done')
  if (missing !== undefined) return fails(`it needs the output of ${missing}, which ${state.row(missing)?.state ?? 'has not run'}`)
  const question = row.question === null ? undefined : sops.question(row.question)
  const answer = row.state === 'asked' ? (turns.answer ?? answerOf(question)) : undefined
  if (row.state === 'asked' && answer === undefined) return { state: 'asked', why: row.why }
  // Used up before the step runs again: should that be in doubt too, a person is asked anew.
  if (answer !== undefined)
    sops.runs.transaction(() => {
      if (question && !sops.use(question.id)) sops.close(question.id, `answered: ${answer}`)
      state.put(step.id, { state: 'running', question: null, why: '' })
    })
  const content: JsonObject = step.contentFrom === undefined ? {} : { content: read({ kind: 'steps', name: step.contentFrom }) }
  const work: StepTurn['work'] =
    step.kind === 'tool'
      ? { tool: step.tool, input: { ...fill(step.args, read), ...content } }
      : {
          prompt: promptOf(step, sop, context, read),
          // What a request sends is as untrusted as what a step has read.
          readsOutputs: run.startedBy.startsWith('webhook') || state.all().some(({ output }) => output !== ''),
          budget: sop.budget && { ...sop.budget, scope: `procedure:${run.id}` },
        }
  const { setup: usual } = turns.host
  const setup = { ...usual, config: { ...usual.config, workspaceDir: run.workspace } }
  const name = `procedure ${run.id} ${step.id} ${row.attempt}`
  const turn = {
    name,
    setup,
    work,
    timeoutMs: step.timeoutMs,
    answer,
    signal,
    ...(row.state === 'waiting' && question ? { question } : {}),
  }
  const outcome = await runTurn(turn, { ...turns }).catch((error: unknown) => fails(errorText(error)))
  if (outcome.state !== 'asked') return outcome
  const asked = sops.ask({ run: run.id, name: run.name, step: step.id, kind: 'sop.doubt', prompt: outcome.why, livesMs: 30 * dayMs })
  state.put(step.id, { question: asked })
  return outcome
}

function fails(why: string): StepOutcome {
  return { state: 'failed', output: '', why }
}

/** Returns the answer to the question whether a step in doubt runs again. */
function answerOf(question: ReturnType<HostRecords['sops']['question']>): DoubtAnswer | undefined {
  if (question?.state === 'allowed') return 'again'
  return question?.state === 'denied' ? 'skip' : undefined
}

/** Returns the steps without whose output this one makes no sense. */
function sourcesOf({ contentFrom, args, prompt }: Step): readonly string[] {
  const named = [...referencesIn(args), ...referencesIn(prompt)].flatMap(({ kind, name }) => (kind === 'steps' ? [name] : []))
  return contentFrom === undefined ? named : [contentFrom, ...named]
}

/** Returns the prompt with the output of the steps just before, unless it names outputs itself. */
function promptOf(step: Step, { steps }: Sop, { state }: Performing, read: (reference: Reference) => string): string {
  const text = fill(step.prompt, read)
  if (referencesIn(step.prompt).some(({ kind }) => kind === 'steps')) return text
  const group = (one: Step) => one.parallel !== undefined && one.parallel === step.parallel
  const before = steps
    .slice(0, steps.indexOf(step))
    .filter((one) => !group(one) && state.row(one.id)?.state === 'done' && one.kind !== 'approval')
  const last = before.at(-1)
  const results = before.filter((one) => one === last || (last?.parallel !== undefined && one.parallel === last.parallel))
  const blocks = results.map(({ id }) => `Output of the step ${quote(id)}:\n${state.row(id)?.output}`)
  return [text, ...blocks].join('\n\n')
}

async function approve(step: Step, { run, turns, prompt, signal }: Performing & { readonly prompt: string }): Promise<StepOutcome> {
  const { sops } = turns.records
  const id = sops.ask({ run: run.id, name: run.name, step: step.id, kind: 'sop.approval', prompt, livesMs: step.timeoutMs ?? 30 * dayMs })
  sops.written()
  if (sops.question(id)?.isOver === false && !signal.aborted) await turns.ask?.({ id, prompt })
  const found = sops.question(id)
  if (found?.isOver === false) return { state: 'waiting', question: id }
  if (found?.state === 'allowed' && sops.use(id)) return { state: 'done', output: '', why: `allowed by ${found.decidedBy}` }
  if (found?.state === 'used') return { state: 'done', output: '', why: `allowed by ${found.decidedBy}` }
  if (found?.state === 'denied') return fails(`denied by ${found.decidedBy}${found.note ? `: ${found.note}` : ''}`)
  return fails(found?.state === 'altered' ? 'its approval was altered' : 'nobody answered in time')
}
