/** Reads SOP.toml, the file of a procedure, and reports every mistake at once, each with line and column. */

import { createTableReader, type FieldProblem, type TableReader } from '../config/text/table-reader.ts'
import { readToml, shown } from '../config/text/toml.ts'
import type { Budget } from '../host/access/cost/budget.ts'
import { readTiming, readZone } from '../host/schedules/read-timing.ts'
import { errorText } from '../kit/errors.ts'
import { isObject, type Json, type JsonObject } from '../kit/json.ts'
import { didYouMean } from '../kit/text.ts'
import type { Tool } from '../runtime/port.ts'
import { createValidator, type Validator } from '../security/arguments/tool-arguments.ts'
import { type Reference, referencesIn } from './template.ts'

/** Runs of these steps end in one of three states, which `when` can ask about. */
export const endStates = ['done', 'failed', 'skipped'] as const
export type EndState = (typeof endStates)[number]

/** A step runs only when this holds: of the state or output of an earlier step, or of an input. */
export type Condition = {
  readonly of: { readonly step: string } | { readonly input: string }
  readonly test: { readonly state: EndState } | { readonly contains: string } | { readonly equals: string }
  readonly not: boolean
}

export type Step = {
  readonly id: string
  readonly kind: 'tool' | 'agent' | 'approval'
  /** Empty unless the kind is `tool`. */
  readonly tool: string
  readonly args: JsonObject
  /** The earlier step whose output becomes the argument `content`. */
  readonly contentFrom?: string
  readonly prompt: string
  readonly onFailure: 'abort' | 'continue'
  readonly when?: Condition
  /** How often the step runs again after a failure. */
  readonly retry: number
  readonly timeoutMs?: number
  /** Neighbours of one group run at the same time. */
  readonly parallel?: string
}

/** Begins a run by itself: exactly one of `schedule`, `message` and `webhook` is there. */
export type Trigger = {
  /** A cron expression; the answer goes to the address `to` of `channel`. */
  readonly schedule?: string
  readonly zone?: string
  readonly channel?: string
  readonly to?: string
  /** The text of a message, or with `input` the beginning of one. */
  readonly message?: string
  /** The name of the access token that may begin it over HTTP. */
  readonly webhook?: string
  /** The input that gets the rest of the message, or the body of the request. */
  readonly input?: string
}

export type SopInput = { readonly description: string; readonly default?: string }

export type Sop = {
  readonly name: string
  readonly description: string
  readonly inputs: { readonly [name: string]: SopInput }
  readonly steps: readonly Step[]
  /** The results of a run by name: texts with templates. */
  readonly outputs: { readonly [name: string]: string }
  /** The most that all model calls of a run may use. */
  readonly budget?: Omit<Budget, 'scope'>
  readonly triggers: readonly Trigger[]
}

export type ReadSop = { readonly sop: Sop; readonly problems: readonly FieldProblem[] }

type KnownTools = ReadonlyMap<string, Pick<Tool, 'parameters'>>

/** `folder`: the name of the folder of the file, which the procedure must have too. */
type SopSource = { readonly text: string; readonly folder?: string; readonly tools: KnownTools }

const mostSteps = 10_000
const mostAtOnce = 64
const hourS = 3_600
const yearS = 366 * 24 * hourS

export async function readSop({ text, folder, tools }: SopSource): Promise<ReadSop> {
  const { data, problems: broken, place } = readToml(text)
  const problems: FieldProblem[] = broken.map((problem) => ({ ...problem, field: '' }))
  const root = createTableReader({ data, path: '', place }, problems)
  const name = root.text('name')
  if (root.has('name') && !/^[a-z][a-z0-9-]{0,63}$/.test(name))
    root.wrong('name', `has small letters, digits and "-", and begins with a letter; got ${shown(name)}`)
  else if (folder !== undefined && root.has('name') && name !== folder)
    root.wrong('name', `is the name of the folder, ${shown(folder)}; got ${shown(name)}`)
  const description = root.text('description', '')
  const inputs = Object.fromEntries(root.tables('inputs').map(([key, table]) => [key, inputOf(key, table)]))
  const tables = root.list('steps')
  if (!root.has('steps')) root.wrong('steps', 'is missing; it is a list of tables: [[steps]]')
  if (tables.length > mostSteps) root.wrong('steps', `are ${tables.length}; the limit is ${mostSteps}`)
  const validate = createValidator()
  const steps: Step[] = []
  for (const table of tables.slice(0, mostSteps)) steps.push(await stepOf(table, tools, validate))
  const outputs = outputsOf(root, { steps, inputs })
  const budget = root.has('budget') ? budgetOf(root.table('budget')) : undefined
  const triggers = (isObject(root.raw('triggers')) ? [root.table('triggers')] : root.list('triggers')).map((table) =>
    triggerOf(table, inputs),
  )
  root.end()
  const sop = { name, description, inputs, steps, outputs, triggers, ...(budget && { budget }) }
  checkOrder(sop, tables)
  return { sop, problems: problems.sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0)) }
}

function inputOf(name: string, table: TableReader): SopInput {
  if (!isInputName(name)) table.wrong('', 'is named with small letters, digits and "_"')
  const input = { description: table.text('description', ''), ...(table.has('default') ? { default: table.text('default') } : {}) }
  table.end()
  return input
}

/** Reads the outputs, after the steps and inputs that they may name. */
function outputsOf(root: TableReader, { steps, inputs }: Pick<Sop, 'steps' | 'inputs'>): Sop['outputs'] {
  const table = root.table('outputs')
  const names = Object.keys(root.raw('outputs') ?? {})
  const ids = steps.flatMap(({ id, kind }) => (kind === 'approval' ? [] : [id]))
  return Object.fromEntries(
    names.map((output) => {
      if (!isInputName(output)) table.wrong(output, 'is named with small letters, digits and "_"')
      const text = table.text(output)
      for (const { kind, name } of referencesIn(text)) {
        if (kind === 'inputs' && !Object.hasOwn(inputs, name)) table.wrong(output, unknownInput(name, inputs))
        if (kind === 'steps' && !ids.includes(name))
          table.wrong(output, `${shown(name)} is not a step with an output${didYouMean(name, ids)}`)
      }
      return [output, text]
    }),
  )
}

function budgetOf(table: TableReader): Sop['budget'] {
  const tokens = table.has('tokens') ? table.whole('tokens', { min: 1, max: 1e12 }) : undefined
  const usd = table.raw('usd')
  const isMoney = typeof usd === 'number' && usd > 0 && usd <= 1_000_000
  if (usd !== undefined && !isMoney) table.wrong('usd', `is a number of US dollars above 0; got ${shown(usd)}`)
  if (tokens === undefined && usd === undefined) table.wrong('', 'limits nothing; it has tokens, usd or both')
  table.end()
  const micros = isMoney ? Math.round(usd * 1_000_000) : undefined
  return { tokens, micros, window: 'ever', tokensKey: 'budget.tokens', microsKey: 'budget.usd' }
}

const triggerKinds = ['schedule', 'message', 'webhook'] as const
const triggerKeys = [...triggerKinds, 'zone', 'channel', 'to', 'input'] as const

function triggerOf(table: TableReader, inputs: Sop['inputs']): Trigger {
  const found = triggerKeys.filter((key) => table.raw(key) !== undefined)
  const trigger: Trigger = Object.fromEntries(found.map((key) => [key, table.text(key)]))
  table.end()
  const { schedule, zone, message, input } = trigger
  const kinds = triggerKinds.filter((kind) => table.has(kind))
  const [kind = 'schedule'] = kinds
  if (kinds.length !== 1) table.wrong('', `begins by exactly one of ${triggerKinds.join(', ')}; it has ${kinds.join(' and ') || 'none'}`)
  for (const key of kind === 'schedule' ? (['input'] as const) : (['zone', 'channel', 'to'] as const))
    if (table.has(key)) table.wrong(key, `does not belong to a trigger by ${kind}`)
  if (table.has('channel') !== table.has('to')) table.wrong(table.has('to') ? 'to' : 'channel', 'needs both channel and to')
  const because = (key: string, read: () => unknown) => {
    try {
      read()
    } catch (error) {
      table.wrong(key, errorText(error).replace(/^(--\w+)? /, ''))
    }
  }
  if (zone !== undefined) because('zone', () => readZone(zone, ''))
  if (schedule !== undefined) because('schedule', () => readTiming({ cron: schedule }, { now: Date.now(), zone: 'UTC' }))
  if (message !== undefined && !/^(?!\/)\S(?:[^\n]{0,198}\S)?$/.test(message))
    table.wrong('message', `is one line without blanks at its ends, and does not begin with "/"; got ${shown(message)}`)
  if (trigger.webhook === '') table.wrong('webhook', 'is the name of an access token; see: braidclaw token list')
  if (input !== undefined && !Object.hasOwn(inputs, input)) table.wrong('input', unknownInput(input, inputs))
  const missing = Object.keys(inputs).find((name) => name !== input && inputs[name]?.default === undefined)
  if (missing !== undefined) table.wrong(kind, `gives no value to the input ${shown(missing)}, which has no default`)
  return trigger
}

function isInputName(name: string): boolean {
  return /^[a-z][a-z0-9_]{0,31}$/.test(name)
}

async function stepOf(table: TableReader, tools: KnownTools, validate: Validator): Promise<Step> {
  const id = table.text('id')
  if (table.has('id') && !/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(id))
    table.wrong('id', `has letters, digits, "-" and "_", 64 at most; got ${shown(id)}`)
  const kind = table.oneOf('kind', ['tool', 'agent', 'approval'])
  const isTool = kind === 'tool'
  const tool = isTool ? table.text('tool') : ''
  const prompt = isTool ? '' : table.text('prompt')
  if (!isTool && table.has('prompt') && prompt.trim() === '') table.wrong('prompt', 'is empty')
  const { args, contentFrom } = isTool ? await argumentsOf({ table, tool, tools, validate }) : { args: {} }
  const longest = kind === 'approval' ? yearS : 24 * hourS
  const timeout = table.has('timeout') ? table.whole('timeout', { min: 1, max: longest }) : undefined
  const parallel = table.has('parallel') ? table.text('parallel') : undefined
  const when = conditionOf(table)
  const step: Step = {
    ...{ id, kind, tool, args, prompt, contentFrom, when, parallel },
    onFailure: table.oneOf('on_failure', ['abort', 'continue'], 'abort'),
    retry: kind === 'approval' ? 0 : table.whole('retry', { min: 0, max: 10, fallback: 0 }),
    timeoutMs: timeout && timeout * 1_000,
  }
  table.end()
  return step
}

type ArgumentSource = { readonly table: TableReader; readonly tool: string; readonly tools: KnownTools; readonly validate: Validator }

async function argumentsOf({ table, tool, tools, validate }: ArgumentSource): Promise<Pick<Step, 'args' | 'contentFrom'>> {
  const raw = table.raw('args') ?? {}
  const known = tools.get(tool)
  if (table.has('tool') && known === undefined)
    table.wrong('tool', `${shown(tool)} is not a tool${didYouMean(tool, [...tools.keys()]) || '; see: braidclaw tool list'}`)
  if (!isObject(raw) || !isJson(raw)) {
    table.wrong(
      'args',
      isObject(raw) ? 'has a date or a number that JSON cannot hold; write it as a text' : `is a table; got ${shown(raw)}`,
    )
    return { args: {} }
  }
  const { content_from: contentFrom, ...args } = raw
  if (contentFrom !== undefined && typeof contentFrom !== 'string')
    table.wrong('args.content_from', `is the id of an earlier step; got ${shown(contentFrom)}`)
  if (contentFrom !== undefined && args.content !== undefined)
    table.wrong('args.content', 'stands beside content_from; keep one of the two')
  // The shell would parse what a template inserts.
  if (tool === 'shell' && referencesIn(args).length > 0)
    table.wrong('args', 'of the tool shell cannot have templates: the shell would run what they insert; write it to a file first')
  const checked = known && (await validate(known.parameters, contentFrom === undefined ? args : { ...args, content: '' }))
  if (checked && !checked.ok) table.wrong('args', `do not fit the tool ${tool}: ${checked.message}`)
  return { args, ...(typeof contentFrom === 'string' ? { contentFrom } : {}) }
}

function isJson(value: unknown): value is JsonObject {
  const fits = (each: unknown): each is Json => {
    if (Array.isArray(each)) return each.every(fits)
    if (isObject(each)) return !(each instanceof Date) && Object.values(each).every(fits)
    return typeof each === 'string' || typeof each === 'boolean' || (typeof each === 'number' && Number.isFinite(each))
  }
  return fits(value)
}

const howWhen =
  'is a table such as { step = "list", contains = "TODO" }, { step = "list", state = "failed" } or { input = "city", equals = "Bern" }'

function conditionOf(table: TableReader): Condition | undefined {
  const raw = table.raw('when')
  if (raw === undefined) return undefined
  const { step, input, state, contains, equals, not = false, ...rest } = isObject(raw) ? raw : { not: 0 }
  const of =
    typeof step === 'string' && input === undefined ? { step } : typeof input === 'string' && step === undefined ? { input } : undefined
  const isState = (value: unknown): value is EndState => endStates.some((each) => each === value)
  const tests = [
    ...(isState(state) && of && 'step' in of ? [{ state }] : []),
    ...(typeof contains === 'string' ? [{ contains }] : []),
    ...(typeof equals === 'string' ? [{ equals }] : []),
  ]
  const [test] = tests
  const given = [state, contains, equals].filter((each) => each !== undefined).length
  if (of && test && given === 1 && tests.length === 1 && typeof not === 'boolean' && Object.keys(rest).length === 0)
    return { of, test, not }
  table.wrong('when', `${howWhen}, and may have not = true; states: ${endStates.join(', ')}`)
  return undefined
}

/** Returns the steps in the order in which they run; those of one list run at the same time. */
export function stagesOf(steps: readonly Step[]): readonly (readonly Step[])[] {
  const stages: Step[][] = []
  for (const step of steps) {
    const last = stages.at(-1)
    if (last && step.parallel !== undefined && last[0]?.parallel === step.parallel) last.push(step)
    else stages.push([step])
  }
  return stages
}

type StepReference = { readonly id: string; readonly field: string }

function stepReferences({ args, prompt, contentFrom, when }: Step): readonly StepReference[] {
  const ofSteps = (field: string, references: readonly Reference[]) =>
    references.flatMap(({ kind, name }) => (kind === 'steps' ? [{ id: name, field }] : []))
  return [
    ...(contentFrom === undefined ? [] : [{ id: contentFrom, field: 'args.content_from' }]),
    ...ofSteps('args', referencesIn(args)),
    ...ofSteps('prompt', referencesIn(prompt)),
    ...(when && 'step' in when.of ? [{ id: when.of.step, field: 'when' }] : []),
  ]
}

/** Checks what the steps say of one another, of inputs, and of the order. */
function checkOrder(sop: Sop, tables: readonly TableReader[]): void {
  const { steps, inputs } = sop
  const first = new Map<string, number>()
  for (const [at, { id }] of steps.entries()) {
    if (first.has(id) && id !== '') tables[at]?.wrong('id', `${shown(id)} is the id of an earlier step too; choose another`)
    else first.set(id, at)
  }
  const stageAt = stagesOf(steps).flatMap((stage, number) => stage.map(() => number))
  checkGroups(sop, tables)
  for (const [at, step] of steps.entries()) {
    const wrong = (field: string, message: string) => tables[at]?.wrong(field, message)
    for (const { id, field } of stepReferences(step)) {
      const target = first.get(id)
      if (target === undefined) wrong(field, `${shown(id)} is not a step${didYouMean(id, [...first.keys()])}`)
      else if ((stageAt[target] ?? 0) >= (stageAt[at] ?? 0)) wrong(field, `${shown(id)} ${whyLater({ steps, first, at, target })}`)
      else if (field !== 'when' && steps[target]?.kind === 'approval') wrong(field, `${shown(id)} is an approval, which has no output`)
    }
    const why = neverRuns(step, (id) => steps[first.get(id) ?? -1])
    if (why !== undefined) wrong('when', why)
    for (const name of inputsOf(step)) if (!Object.hasOwn(inputs, name)) wrong(fieldOf(step, name), unknownInput(name, inputs))
  }
}

function checkGroups({ steps }: Sop, tables: readonly TableReader[]): void {
  const groups = new Set<string>()
  let at = 0
  for (const stage of stagesOf(steps)) {
    const table = tables[at]
    at += stage.length
    const parallel = stage[0]?.parallel
    if (parallel === undefined) continue
    const wrong = (message: string) => table?.wrong('parallel', `${shown(parallel)} ${message}`)
    if (groups.has(parallel)) wrong('is used above; the steps of a group stand together')
    groups.add(parallel)
    if (stage.length > mostAtOnce) wrong(`has ${stage.length} steps; ${mostAtOnce} run at the same time at most`)
  }
}

function inputsOf({ args, prompt, when }: Step): readonly string[] {
  const named = [...referencesIn(args), ...referencesIn(prompt)].flatMap(({ kind, name }) => (kind === 'inputs' ? [name] : []))
  return [...named, ...(when && 'input' in when.of ? [when.of.input] : [])]
}

function fieldOf({ kind, when }: Step, name: string): string {
  return when && 'input' in when.of && when.of.input === name ? 'when' : kind === 'tool' ? 'args' : 'prompt'
}

function unknownInput(name: string, inputs: Sop['inputs']): string {
  return `names the input ${shown(name)}, which is not in [inputs]${didYouMean(name, Object.keys(inputs))}`
}

type Later = { readonly steps: readonly Step[]; readonly first: ReadonlyMap<string, number>; readonly at: number; readonly target: number }

/** Says why a step cannot refer to another one: both wait for each other, or the other one does not run before it. */
function whyLater({ steps, first, at, target }: Later): string {
  const [from, to] = [steps[at], steps[target]]
  if (from === to) return 'is this step itself'
  const waiting = new Set([to?.id ?? ''])
  for (const id of waiting) for (const next of stepReferences(steps[first.get(id) ?? -1] ?? noStep)) waiting.add(next.id)
  if (from && waiting.has(from.id)) return 'waits for this step, so the two wait in a circle'
  return from?.parallel !== undefined && from.parallel === to?.parallel
    ? 'runs at the same time'
    : 'comes later; only an earlier step has an output'
}

const noStep: Step = { id: '', kind: 'agent', tool: '', args: {}, prompt: '', onFailure: 'abort', retry: 0 }

/** @returns why the condition never holds, if so */
function neverRuns({ when }: Step, find: (id: string) => Step | undefined): string | undefined {
  if (!when || !('step' in when.of) || !('state' in when.test)) return undefined
  const other = find(when.of.step)
  if (other === undefined) return undefined
  const { state } = when.test
  const never = `so this step never runs`
  if (!when.not && state === 'failed' && other.onFailure === 'abort')
    return `waits for a failure of ${shown(other.id)}, which ends the run, ${never}; give it on_failure = "continue"`
  if (!when.not && state === 'skipped' && !other.when)
    return `waits until ${shown(other.id)} is skipped, which it never is without a "when", ${never}`
  if (when.not && state === 'done' && other.onFailure === 'abort' && !other.when)
    return `excludes that ${shown(other.id)} is done, but nothing else lets the run continue, ${never}`
  return undefined
}
