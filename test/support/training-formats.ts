/**
 * Reads lines of training data as the public descriptions of the formats say: the RFC of ATIF v1.7, TRL's "Dataset formats and types", the results
 * of verifiers, the fine-tuning of chat models, and seed 003. Written from these alone, and without a schema library. Throws on the first
 * violation.
 */

/** What each format tells about a run. `answers`: the texts of the model. */
export type Told = {
  readonly prompt: string
  readonly answers: readonly string[]
  readonly calls: readonly string[]
  readonly results: readonly string[]
  readonly reward?: number | undefined
}

type Fields = { readonly [name: string]: unknown }
type Kind = 'text' | 'number' | 'integer' | 'boolean' | 'object' | 'list' | 'null'

function kindOf(value: unknown): Kind | 'none' {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  if (typeof value === 'number') return Number.isSafeInteger(value) ? 'integer' : Number.isFinite(value) ? 'number' : 'none'
  return typeof value === 'string' ? 'text' : typeof value === 'boolean' ? 'boolean' : typeof value === 'object' ? 'object' : 'none'
}

/** `fields`: name to allowed kinds; a name that ends with "?" may be missing. No other name may be there. */
function fieldsOf(value: unknown, where: string, fields: { readonly [name: string]: readonly Kind[] }): Fields {
  if (kindOf(value) !== 'object') throw new Error(`${where} is not an object`)
  const found = value as Fields
  const known = new Set(Object.keys(fields).map((name) => name.replace('?', '')))
  for (const name of Object.keys(found)) if (!known.has(name)) throw new Error(`${where} has the unknown key ${name}`)
  for (const [name, kinds] of Object.entries(fields)) {
    const key = name.replace('?', '')
    if (!(key in found)) {
      if (name.endsWith('?')) continue
      throw new Error(`${where} has no ${key}`)
    }
    const kind = kindOf(found[key])
    const isNumber = kind === 'integer' && kinds.includes('number')
    if (!kinds.includes(kind as Kind) && !isNumber) throw new Error(`${where}.${key} is ${kind}, not ${kinds.join(' or ')}`)
  }
  return found
}

const list = (value: unknown) => value as readonly unknown[]
const text = (value: unknown) => value as string

function parse(line: string): unknown {
  if (/[\n\r]/.test(line)) throw new Error('a record is one line')
  if (!line.isWellFormed()) throw new Error('the line has half a surrogate pair')
  return JSON.parse(line, (_, value) => {
    if (typeof value === 'string' && !value.isWellFormed()) throw new Error('a text has half a surrogate pair')
    return value
  })
}

/** Seed 003, §Trajectory Format. */
export function readSeed(line: string): Told {
  const record = fieldsOf(parse(line), 'trajectory', {
    task_id: ['text'],
    prompt: ['text'],
    steps: ['list'],
    outcome: ['text'],
    iterations: ['integer'],
    reward: ['number'],
  })
  const steps = list(record.steps).map((step, at) =>
    fieldsOf(step, `steps[${at}]`, { state: ['text'], action: ['text'], observation: ['text'], 'thinking?': ['text'] }),
  )
  if (!['success', 'failure'].includes(text(record.outcome))) throw new Error('outcome')
  const reward = record.reward as number
  if ((record.outcome === 'success') !== (reward === 1)) throw new Error('outcome and reward contradict each other')
  return {
    prompt: text(record.prompt),
    answers: [],
    calls: steps.map(({ action }) => text(action)),
    results: steps.map(({ observation }) => text(observation)),
    reward,
  }
}

const isTime = (value: unknown) =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text(value)) && !Number.isNaN(Date.parse(text(value)))

/** The RFC of ATIF, v1.7. */
export function readAtif(line: string): Told & { readonly extra: Fields } {
  const root = fieldsOf(parse(line), 'root', {
    ...{ schema_version: ['text'], 'session_id?': ['text'], 'trajectory_id?': ['text'], agent: ['object'], steps: ['list'] },
    ...{ 'notes?': ['text'], 'final_metrics?': ['object'], 'continued_trajectory_ref?': ['text'], 'extra?': ['object'] },
    'subagent_trajectories?': ['list'],
  })
  if (root.schema_version !== 'ATIF-v1.7') throw new Error('schema_version')
  fieldsOf(root.agent, 'agent', {
    name: ['text'],
    version: ['text'],
    'model_name?': ['text'],
    'tool_definitions?': ['list'],
    'extra?': ['object'],
  })
  if (root.final_metrics !== undefined)
    fieldsOf(root.final_metrics, 'final_metrics', {
      ...{ 'total_prompt_tokens?': ['integer'], 'total_completion_tokens?': ['integer'], 'total_cached_tokens?': ['integer'] },
      ...{ 'total_cost_usd?': ['number'], 'total_steps?': ['integer'], 'extra?': ['object'] },
    })
  const steps = list(root.steps).map(atifStep)
  if (steps.length === 0) throw new Error('no step')
  return {
    prompt: steps.find(({ source }) => source === 'user')?.message ?? '',
    answers: steps.flatMap(({ source, message }) => (source === 'agent' ? [message] : [])),
    calls: steps.flatMap(({ calls }) => calls),
    results: steps.flatMap(({ results }) => results),
    reward: ((root.extra as Fields)?.reward as number | null) ?? undefined,
    extra: root.extra as Fields,
  }
}

function atifStep(value: unknown, at: number) {
  const where = `steps[${at}]`
  const step = fieldsOf(value, where, {
    ...{ step_id: ['integer'], 'timestamp?': ['text'], source: ['text'], 'model_name?': ['text'], 'reasoning_effort?': ['text', 'number'] },
    ...{ message: ['text'], 'reasoning_content?': ['text'], 'tool_calls?': ['list'], 'observation?': ['object'], 'metrics?': ['object'] },
    ...{ 'llm_call_count?': ['integer'], 'is_copied_context?': ['boolean'], 'extra?': ['object'] },
  })
  if (step.step_id !== at + 1) throw new Error(`${where}.step_id is ${step.step_id}: it counts from 1 without gaps`)
  if (step.timestamp !== undefined && !isTime(step.timestamp)) throw new Error(`${where}.timestamp is not ISO 8601`)
  if (!['system', 'user', 'agent'].includes(text(step.source))) throw new Error(`${where}.source`)
  const ofAgent = ['model_name', 'reasoning_effort', 'reasoning_content', 'tool_calls', 'metrics'].filter(
    (name) => step[name] !== undefined,
  )
  if (step.source !== 'agent' && ofAgent.length > 0) throw new Error(`${where} has ${ofAgent.join(', ')}, which only an agent has`)
  if (step.llm_call_count === 0 && (step.metrics !== undefined || step.reasoning_content !== undefined))
    throw new Error(`${where} had no model call, and has metrics`)
  if (step.metrics !== undefined)
    fieldsOf(step.metrics, `${where}.metrics`, {
      ...{ 'prompt_tokens?': ['integer'], 'completion_tokens?': ['integer'], 'cached_tokens?': ['integer'], 'cost_usd?': ['number'] },
      ...{ 'prompt_token_ids?': ['list'], 'completion_token_ids?': ['list'], 'logprobs?': ['list'], 'extra?': ['object'] },
    })
  const calls = list(step.tool_calls ?? []).map((call, index) =>
    fieldsOf(call, `${where}.tool_calls[${index}]`, {
      tool_call_id: ['text'],
      function_name: ['text'],
      arguments: ['object'],
      'extra?': ['object'],
    }),
  )
  const ids = new Set(calls.map(({ tool_call_id }) => tool_call_id))
  if (ids.size !== calls.length) throw new Error(`${where} has two calls of one id`)
  const observation =
    step.observation === undefined ? { results: [] } : fieldsOf(step.observation, `${where}.observation`, { results: ['list'] })
  const results = list(observation.results).map((result, index) => {
    const shape = { 'source_call_id?': ['text'], 'content?': ['text'], 'subagent_trajectory_ref?': ['list'], 'extra?': ['object'] } as const
    const found = fieldsOf(result, `${where}.observation.results[${index}]`, shape)
    if (found.source_call_id !== undefined && !ids.has(found.source_call_id))
      throw new Error(`${where} has a result of a call of another step`)
    return text(found.content)
  })
  return {
    source: text(step.source),
    message: text(step.message),
    calls: calls.map((call) => `${call.function_name} ${JSON.stringify(call.arguments)}`),
    results,
  }
}

type Chat = { readonly argumentsAre: 'object' | 'text'; readonly thinks: boolean; readonly namesTool: boolean }

/** Messages of a chat; a result follows its call, and belongs to one that is waiting for it. */
function readChat(value: unknown, where: string, { argumentsAre, thinks, namesTool }: Chat): Omit<Told, 'prompt'> {
  const told = { answers: [] as string[], calls: [] as string[], results: [] as string[] }
  const waiting = new Set<string>()
  for (const [at, message] of list(value).entries()) {
    const { role } = message as Fields
    const here = `${where}[${at}]`
    if (role === 'assistant') {
      const reply = fieldsOf(message, here, {
        ...{ role: ['text'], content: ['text', 'null'], 'tool_calls?': ['list'] },
        ...(thinks ? { 'reasoning_content?': ['text'] as const } : {}),
      })
      waiting.clear()
      told.answers.push(text(reply.content) ?? '')
      if (reply.tool_calls !== undefined && list(reply.tool_calls).length === 0) throw new Error(`${here} has an empty list of calls`)
      for (const each of list(reply.tool_calls ?? [])) {
        const call = fieldsOf(each, `${here}.tool_calls`, { id: ['text'], type: ['text'], function: ['object'] })
        const made = fieldsOf(call.function, `${here}.function`, { name: ['text'], arguments: [argumentsAre] })
        if (call.type !== 'function') throw new Error(`${here}: type`)
        waiting.add(text(call.id))
        told.calls.push(`${made.name} ${argumentsAre === 'text' ? made.arguments : JSON.stringify(made.arguments)}`)
      }
    } else if (role === 'tool') {
      const shape = { role: ['text'], tool_call_id: ['text'], content: ['text'] } as const
      const result = fieldsOf(message, here, namesTool ? { ...shape, name: ['text'] } : shape)
      if (!waiting.delete(text(result.tool_call_id))) throw new Error(`${here} answers a call that does not wait for it`)
      told.results.push(text(result.content))
    } else {
      if (role !== 'user') throw new Error(`${here}.role`)
      fieldsOf(message, here, { role: ['text'], content: ['text'] })
    }
  }
  return told
}

function readPrompt(value: unknown): string {
  const [first, ...more] = list(value)
  if (first === undefined || more.length > 0) throw new Error('the prompt is not one message')
  const { role, content } = fieldsOf(first, 'prompt[0]', { role: ['text'], content: ['text'] })
  if (role !== 'user') throw new Error('the prompt is not the user')
  return text(content)
}

const trl: Chat = { argumentsAre: 'object', thinks: true, namesTool: true }

/** TRL, "Prompt-completion". It ignores further columns. */
export function readTrlSft(line: string): Told & { readonly provenance: Fields } {
  const record = fieldsOf(parse(line), 'record', {
    ...{ prompt: ['list'], completion: ['list'], task_id: ['text'], 'reward?': ['integer'], provenance: ['object'] },
  })
  const told = readChat(record.completion, 'completion', trl)
  if (told.answers.length === 0) throw new Error('nothing to learn')
  return {
    prompt: readPrompt(record.prompt),
    ...told,
    reward: (record.reward as number | null) ?? undefined,
    provenance: record.provenance as Fields,
  }
}

/** TRL, "Preference" with an explicit prompt. */
export function readTrlPref(line: string) {
  const record = fieldsOf(parse(line), 'record', {
    ...{ prompt: ['list'], chosen: ['list'], rejected: ['list'], task_id: ['text'], provenance: ['object'] },
  })
  const prompt = readPrompt(record.prompt)
  const [chosen, rejected] = (['chosen', 'rejected'] as const).map((name) => {
    const told = readChat(record[name], name, trl)
    if (told.answers.length === 0) throw new Error(`${name} is empty`)
    return { prompt, ...told }
  })
  const provenance = fieldsOf(record.provenance, 'provenance', { chosen: ['object'], rejected: ['object'] })
  return { chosen, rejected, task: text(record.task_id), provenance: provenance as { chosen: Fields; rejected: Fields } }
}

/** TRL, "Unpaired preference". */
export function readTrlKto(line: string): Told {
  const record = fieldsOf(parse(line), 'record', {
    ...{ prompt: ['list'], completion: ['list'], label: ['boolean'], task_id: ['text'], provenance: ['object'] },
  })
  return { prompt: readPrompt(record.prompt), ...readChat(record.completion, 'completion', trl), reward: record.label === true ? 1 : 0 }
}

/** The results of verifiers: messages of chat completions, a number for the example, a reward. */
export function readVerifiers(line: string): Told & { readonly example: number; readonly info: Fields } {
  const record = fieldsOf(parse(line), 'record', {
    ...{ example_id: ['integer'], task: ['text'], prompt: ['list'], completion: ['list'], reward: ['number'], 'metrics?': ['object'] },
    ...{ 'stop_condition?': ['text', 'null'], 'info?': ['object'], 'answer?': ['text'] },
  })
  for (const value of Object.values((record.metrics ?? {}) as Fields)) if (kindOf(value) !== 'integer') throw new Error('metrics')
  const told = readChat(record.completion, 'completion', { argumentsAre: 'text', thinks: true, namesTool: false })
  const [example, info] = [record.example_id as number, record.info as Fields]
  return { prompt: readPrompt(record.prompt), ...told, reward: record.reward as number, example, info }
}

/** Fine-tuning of chat models: only messages (and tools); each call has its answer, and the assistant speaks last. */
export function readOpenAi(line: string): Told {
  const record = fieldsOf(parse(line), 'record', { messages: ['list'], 'tools?': ['list'], 'parallel_tool_calls?': ['boolean'] })
  const [first, ...rest] = list(record.messages)
  const told = readChat(rest, 'messages', { argumentsAre: 'text', thinks: false, namesTool: false })
  if (told.calls.length !== told.results.length) throw new Error('a call has no answer')
  if ((rest.at(-1) as Fields | undefined)?.role !== 'assistant') throw new Error('the assistant does not speak last')
  return { prompt: readPrompt([first]), ...told }
}
