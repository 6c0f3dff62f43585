/** Writes a recorded run in each format of training data; a schema says what the records of a format are. */

import { array, int, literal, nullable, strictObject as object, optional, z } from 'zod'
import type { RecordedCall, RecordedMessage, RecordedRun } from '../../../runtime/replay/recorded-run.ts'
import { createSteps, type Trajectory } from '../../../runtime/replay/trajectory.ts'

const text = z.string()
const named = z.string().min(1)
const digest = z.string().regex(/^[0-9a-f]{64}$/)
const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const whole = int().nonnegative()
const reward = z.union([literal(0), literal(1)])
const outcome = z.enum(['success', 'failure'])
const anyObject = z.record(text, z.unknown())

/**
 * Says where a record comes from. `journal_sha256` is the digest of the run's last journal entry, which covers all of them (null in runs of
 * older versions); that of the receipts is over their hashes. `redactions` counts the secrets that stand as a label in the run.
 */
const provenance = object({
  ...{ run_id: named, conversation_id: named, model: text, version: optional(text), tools_sha256: optional(digest) },
  ...{ started: time, ended: nullable(time), ending: nullable(text), journal_sha256: nullable(digest), redactions: whole },
  receipts: object({ count: whole, sha256: digest }),
  checks: array(object({ name: text, tier: whole, digest: optional(text), iteration: whole, pass: z.boolean(), exit: optional(int()) })),
})

/** `task_id` is the SHA-256 of the prompt; `example` counts the tasks from 0. */
export type ExportedRun = RecordedRun & {
  readonly task_id: string
  readonly example: number
  readonly prompt: string
  readonly provenance: z.infer<typeof provenance>
}

/** TRL has the arguments of a call as an object and the tool's name in its result; chat completions have neither. */
type Chat = 'trl' | 'wire'

const user = object({ role: literal('user'), content: text })
const prompt = array(user).length(1)
const chat = (kind: Chat) => {
  const made = object({ name: text, arguments: kind === 'trl' ? anyObject : text })
  const calls = array(object({ id: named, type: literal('function'), function: made })).min(1)
  const reply = object({ role: literal('assistant'), content: text, reasoning_content: optional(text), tool_calls: optional(calls) })
  const result = object({ role: literal('tool'), tool_call_id: named, content: text, ...(kind === 'trl' && { name: text }) })
  return array(z.discriminatedUnion('role', [user, reply, result])).min(1)
}

const promptOf = (run: Pick<ExportedRun, 'prompt'>) => [{ role: 'user', content: run.prompt }]
const answered = (calls: readonly RecordedCall[]) => calls.filter(({ result }) => result !== undefined)

/** Returns the messages after the prompt. A call without a result, because the run ended before it, stays without one. */
function chatOf({ messages }: Pick<RecordedRun, 'messages'>, kind: Chat, thinks = true): readonly object[] {
  return messages.slice(1).flatMap((message): object[] => {
    if (message.role === 'user') return [{ role: 'user', content: message.text }]
    const { text: content, thinking, calls } = message
    const argumentsOf = ({ input, malformed }: RecordedCall) => (kind === 'trl' ? input : (malformed ?? JSON.stringify(input)))
    const made = calls.map((call) => ({ id: call.id, type: 'function', function: { name: call.name, arguments: argumentsOf(call) } }))
    const optional = { reasoning_content: (thinks && thinking) || undefined, tool_calls: made.length > 0 ? made : undefined }
    const results = answered(calls).map(({ id, name, result }) => ({
      role: 'tool',
      tool_call_id: id,
      ...(kind === 'trl' && { name }),
      content: result,
    }))
    return [{ role: 'assistant', content, ...optional }, ...results]
  })
}

const seed = object({
  ...{ task_id: named, prompt: text, outcome, iterations: int().min(1), reward: z.number().min(0).max(1) },
  steps: array(object({ state: text, action: text, observation: text, thinking: optional(text) })),
})

export function stepsOf(messages: readonly RecordedMessage[]): Trajectory['steps'] {
  const to = createSteps()
  for (const message of messages) {
    if (message.role === 'user') to.read(message.text)
    else {
      to.say('thinking', message.thinking)
      to.say('text', message.text)
      for (const call of message.calls) to.act(call)
      for (const { id, result = '' } of answered(message.calls)) to.got(id, result)
      to.end()
    }
  }
  return to.steps
}

const called = object({ tool_call_id: named, function_name: text, arguments: anyObject, extra: optional(anyObject) })
const step = object({
  ...{ step_id: whole, timestamp: time, source: z.enum(['system', 'user', 'agent']), model_name: optional(text), message: text },
  ...{ reasoning_content: optional(text), tool_calls: optional(array(called).min(1)), llm_call_count: optional(whole) },
  observation: optional(object({ results: array(object({ source_call_id: named, content: text })).min(1) })),
  metrics: optional(
    object({
      prompt_tokens: whole,
      completion_tokens: whole,
      cached_tokens: optional(whole),
      cost_usd: optional(z.number().nonnegative()),
    }),
  ),
})
const atif = object({
  ...{ schema_version: literal('ATIF-v1.7'), session_id: named, trajectory_id: named, steps: array(step).min(1) },
  agent: object({ name: text, version: text, model_name: text }),
  final_metrics: object({ total_prompt_tokens: whole, total_completion_tokens: whole, total_cached_tokens: whole, total_steps: whole }),
  extra: object({ task_id: text, outcome: optional(outcome), reward: optional(reward), iterations: whole, provenance }),
}).refine(({ steps }) => steps.every(isInOrder), 'step_id counts from 1 without gaps, and each result is of a call of its step')

function isInOrder({ step_id, tool_calls = [], observation }: z.infer<typeof step>, at: number): boolean {
  const ids = new Set(tool_calls.map(({ tool_call_id }) => tool_call_id))
  return step_id === at + 1 && (observation?.results ?? []).every(({ source_call_id }) => ids.has(source_call_id))
}

function atifOf({ messages, task_id, iterations, reward, provenance }: ExportedRun) {
  const used = messages.flatMap((message) => (message.role === 'agent' && message.usage ? [message.usage] : []))
  const { run_id, version = 'unknown', model } = provenance
  return {
    ...{ schema_version: 'ATIF-v1.7', session_id: run_id, trajectory_id: run_id, agent: { name: 'braidclaw', version, model_name: model } },
    steps: messages.map(atifStepOf),
    final_metrics: {
      total_prompt_tokens: used.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
      total_completion_tokens: used.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
      total_cached_tokens: used.reduce((sum, { cachedInputTokens = 0 }) => sum + cachedInputTokens, 0),
      total_steps: messages.length,
    },
    extra: { task_id, outcome: outcomeOf(reward), reward, iterations, provenance },
  }
}

/** A step that no model requested says so: its `llm_call_count` is 0, and it has no metrics. */
function atifStepOf(message: RecordedMessage, at: number) {
  const about = { step_id: at + 1, timestamp: new Date(message.at).toISOString(), source: message.role, message: message.text }
  if (message.role === 'user') return about
  const { model: model_name, usage, thinking, calls } = message
  const made = calls.map(({ id, name, input, malformed }) => {
    return { tool_call_id: id, function_name: name, arguments: input, extra: malformed === undefined ? undefined : { malformed } }
  })
  const results = answered(calls).map(({ id, result }) => ({ source_call_id: id, content: result }))
  const { inputTokens, outputTokens, cachedInputTokens: cached_tokens, costMicros } = usage ?? {}
  const cost_usd = costMicros === undefined ? undefined : costMicros / 1_000_000
  return {
    ...{ ...about, model_name, reasoning_content: (usage && thinking) || undefined, tool_calls: made.length > 0 ? made : undefined },
    ...{ observation: results.length > 0 ? { results } : undefined, llm_call_count: usage ? 1 : 0 },
    metrics: usage && { prompt_tokens: inputTokens, completion_tokens: outputTokens, cached_tokens, cost_usd },
  }
}

function outcomeOf(reward: RecordedRun['reward']): 'success' | 'failure' | undefined {
  return reward === undefined ? undefined : reward === 1 ? 'success' : 'failure'
}

export const formatNames = ['seed', 'atif', 'trl-sft', 'trl-pref', 'trl-kto', 'verifiers', 'openai'] as const
export type FormatName = (typeof formatNames)[number]

/**
 * `takes`: runs with a reward; runs that a model may imitate, which are answered and have no failed check; every run; or pairs of a success and
 * a failure of one task.
 */
export type Format = {
  readonly takes: 'rewarded' | 'imitable' | 'every' | 'pairs'
  readonly shape: () => z.ZodType
  readonly record: (run: ExportedRun, failure: ExportedRun) => unknown
}

const [about, both] = [{ task_id: text, provenance }, object({ chosen: provenance, rejected: provenance })]
const aboutOf = ({ task_id, provenance }: ExportedRun) => ({ task_id, provenance })

export const formats: { readonly [name in FormatName]: Format } = {
  seed: {
    ...{ takes: 'rewarded', shape: () => seed },
    record: ({ task_id, prompt, messages, iterations, reward }) => {
      return { task_id, prompt, steps: stepsOf(messages), outcome: outcomeOf(reward), iterations, reward }
    },
  },
  atif: { takes: 'every', shape: () => atif, record: atifOf },
  'trl-sft': {
    ...{ takes: 'imitable', shape: () => object({ prompt, completion: chat('trl'), reward: optional(reward), ...about }) },
    record: (run) => ({ prompt: promptOf(run), completion: chatOf(run, 'trl'), reward: run.reward, ...aboutOf(run) }),
  },
  'trl-pref': {
    ...{ takes: 'pairs', shape: () => object({ prompt, chosen: chat('trl'), rejected: chat('trl'), task_id: text, provenance: both }) },
    record: (run, failure) => ({
      ...{ prompt: promptOf(run), chosen: chatOf(run, 'trl'), rejected: chatOf(failure, 'trl'), task_id: run.task_id },
      provenance: { chosen: run.provenance, rejected: failure.provenance },
    }),
  },
  'trl-kto': {
    ...{ takes: 'rewarded', shape: () => object({ prompt, completion: chat('trl'), label: z.boolean(), ...about }) },
    record: (run) => ({ prompt: promptOf(run), completion: chatOf(run, 'trl'), label: run.reward === 1, ...aboutOf(run) }),
  },
  verifiers: {
    ...{
      takes: 'rewarded',
      shape: () =>
        object({
          example_id: whole,
          task: text,
          prompt,
          completion: chat('wire'),
          reward,
          stop_condition: text,
          info: object({ provenance }),
        }),
    },
    record: (run) => ({
      ...{ example_id: run.example, task: run.task_id, prompt: promptOf(run), completion: chatOf(run, 'wire'), reward: run.reward },
      ...{ stop_condition: run.provenance.ending, info: { provenance: run.provenance } },
    }),
  },
  openai: {
    ...{ takes: 'imitable', shape: () => object({ messages: chat('wire').min(2) }) },
    record: (run) => ({ messages: [...promptOf(run), ...chatOf(run, 'wire', false)] }),
  },
}
