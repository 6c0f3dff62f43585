/** Creates an agent over scripted replies and in-memory ports, for tests of the runtime alone: the kernel and all behaviours are real. */

import { createPendingApprovals } from '../../src/host/run/pending-approvals.ts'
import { type Agent, createAgent } from '../../src/runtime/create-agent.ts'
import type { AgentEvent, Call, CheckFinding, ExternalEvent, FailureCode, Judgement, Label, Part } from '../../src/runtime/event.ts'
import {
  type Act,
  type ChangePorts,
  type ChatRequest,
  type CheckPort,
  type Committed,
  type Decision,
  type Message,
  type ModelChunk,
  type ModelWindow,
  ProviderFailure,
  type RecordEntry,
  type Redact,
  type RunIdentity,
  type SummariseTurn,
} from '../../src/runtime/port.ts'
import type { RunLimits } from '../../src/runtime/program.ts'
import { prepareThreads } from '../../src/runtime/threads/prepare-thread.ts'
import type { AnyUserThread } from '../../src/runtime/threads/thread.ts'

export type Reply = {
  text?: string
  thinking?: string
  calls?: { id: string; name?: string; input?: Record<string, string> }[]
  fail?: FailureCode
  hang?: boolean
  pieces?: number
}

export type Script = {
  replies: Reply[]
  verdicts?: Record<string, Partial<Judgement>>
  act?: Act
  changes?: ChangePorts
  limits?: Partial<RunLimits>
  /** What was read earlier in the conversation. */
  labels?: readonly Label[]
  threads?: AnyUserThread[]
  record?: { external?: (event: ExternalEvent) => void; intent?: () => void; denied?: () => void }
  redact?: Redact
  /** Awaited before a batch is kept. */
  commit?: (batch: readonly RecordEntry[], run: RunIdentity) => Promise<unknown>
  ttlMs?: number
  window?: ModelWindow
  summarise?: SummariseTurn
  readonly history?: readonly Message[]
  readonly openMessages?: number
  /** Replies in the place of `replies`. */
  reply?: (request: ChatRequest) => Reply
  tools?: readonly string[]
  /** Called with each request; throws in place of the model. */
  refuse?: (request: ChatRequest) => void
  /** What the record returns when a gate opens, when an approval is used, and for answers given elsewhere. */
  /** What the checks `one`, `two` … find, in the order in which they run, and then again and again; absent: there are none. */
  checks?: { names: readonly string[]; findings: readonly (Partial<CheckFinding> | ((signal: AbortSignal) => Promise<CheckFinding>))[] }
  sandbox?: 'none'
  questions?: {
    opened?: () => Decision | undefined
    use?: (what: 'act' | 'apply') => string | undefined
    answered?: () => Decision | undefined
  }
}

export type Stage = {
  agent: Agent
  /** The checks that ran: `check-1 one`. */
  checked: string[]
  /** Everything that was journalled or recorded, in order. */
  log: string[]
  requests: ChatRequest[]
  acted: string[]
  pulled: () => number
}

export function stage(script: Script): Stage {
  const log: string[] = []
  const requests: ChatRequest[] = []
  const acted: string[] = []
  const checked: string[] = []
  const state = { ids: 0, pulled: 0 }
  const agent = createAgent({
    conversationId: 'conversation-1',
    channel: 'test',
    approvalTtlMs: script.ttlMs ?? 60_000,
    threads: prepareThreads(script.threads ?? []),
    ...(script.sandbox ? { sandbox: script.sandbox } : {}),
    ...(script.checks ? { checks: checksOf(script.checks, checked) } : {}),
    limits: { maxToolRounds: 5, maxParallel: 4, ...script.limits },
    model: 'scripted',
    opening: () => ({
      history: script.history ?? [],
      openMessages: script.openMessages ?? 0,
      systemPrompt: 'system',
      tools: (script.tools ?? []).map((name) => ({ name, description: name, parameters: { type: 'object' } })),
      labels: script.labels ?? [],
    }),
    ports: {
      provider: {
        name: 'scripted',
        capabilities: () => ({ streaming: true, tools: true, thinking: true, contextTokens: 100_000 }),
        chat: (request, signal) => {
          requests.push(request)
          script.refuse?.(request)
          const reply = script.reply?.(request) ?? script.replies[Math.min(requests.length, script.replies.length) - 1]
          return chat(reply ?? {}, signal, () => state.pulled++)
        },
      },
      judge: async (call) => ({ ...allowed(call), ...script.verdicts?.[call.id] }),
      act: async (act, signal) => {
        acted.push(act.id)
        return script.act ? script.act(act, signal) : { status: 'allowed', output: `did ${act.id}` }
      },
      ...(script.changes ? { changes: script.changes } : {}),
      recorder: {
        async commit(run, batch) {
          await script.commit?.(batch, run)
          return keep(script, log, batch)
        },
      },
      questions: createPendingApprovals(script.questions?.answered ?? (() => undefined)),
      ...(script.window ? { window: script.window } : {}),
      ...(script.summarise ? { summarise: () => script.summarise as SummariseTurn } : {}),
      log: () => {},
      redact: script.redact ?? ((value) => value),
      redactStream: () => ({ push: (piece) => piece, flush: () => '' }),
      now: () => Date.now(),
      after: (ms, then) => {
        const timer = setTimeout(then, ms)
        return () => clearTimeout(timer)
      },
      random: (bytes) => new Uint8Array(bytes).fill(state.ids++),
    },
  })
  return { agent, log, requests, acted, checked, pulled: () => state.pulled }
}

function checksOf({ names, findings }: NonNullable<Script['checks']>, checked: string[]): CheckPort {
  return {
    list: names.map((name) => ({ name, tier: 0, digest: `digest of ${name}` })),
    async run({ id, name }, signal) {
      const found = findings[checked.length % findings.length] ?? {}
      checked.push(`${id} ${name}`)
      return typeof found === 'function' ? found(signal) : { pass: false, evidence: `${name} found something`, ...found }
    },
  }
}

/** Throws what the script's hooks throw, and keeps nothing then. */
function keep({ record, questions }: Script, log: string[], batch: readonly RecordEntry[]): Committed {
  const earlier = new Map<string, Decision>()
  const unusable = new Map<string, string>()
  const lines = batch.flatMap((entry) => {
    if (entry.kind === 'external') {
      record?.external?.(entry.event)
      return [entry.event.type]
    }
    if (entry.kind === 'intent') {
      record?.intent?.()
      const refusal = questions?.use?.('act')
      if (refusal) unusable.set(entry.act.id, refusal)
      return [`intent ${entry.act.id}`]
    }
    if (entry.kind === 'denied') {
      record?.denied?.()
      return [`denied ${entry.deny.id} by ${entry.deny.by}`]
    }
    if (entry.kind === 'apply') {
      const refusal = questions?.use?.('apply')
      if (refusal) unusable.set(entry.apply.id, refusal)
      return [`apply ${entry.apply.id}`]
    }
    if (entry.kind === 'dropped') return [`dropped ${entry.drop.id} by ${entry.drop.by}`]
    if (entry.kind === 'retry') return ['retry']
    if (entry.kind === 'finish') return [`finish ${entry.finish.ending.code}`]
    const given = questions?.opened?.()
    if (given) earlier.set(entry.gate.id, given)
    return []
  })
  log.push(...lines)
  return { receipts: new Map(), earlier, unusable }
}

function allowed(call: Call): Judgement {
  return { verdict: 'allow', risk: 'low', rule: 'test', reason: 'test', plan: `plan-${call.id}`, summary: call.name, writes: [] }
}

async function* chat(reply: Reply, signal: AbortSignal, pulled: () => void): AsyncGenerator<ModelChunk> {
  if (reply.fail) throw new ProviderFailure(reply.fail, `scripted ${reply.fail}`)
  if (reply.hang) {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    throw new ProviderFailure('aborted', 'aborted')
  }
  for (let piece = 0; piece < (reply.pieces ?? 0); piece++) {
    pulled()
    yield { type: 'text', text: 'x' }
  }
  const parts: Part[] = [
    ...(reply.thinking ? [{ type: 'thinking', text: reply.thinking } as const] : []),
    ...(reply.text ? [{ type: 'text', text: reply.text } as const] : []),
    ...(reply.calls ?? []).map(({ id, name = 'tool', input = {} }) => ({ type: 'call', id, name, input }) as const),
  ]
  yield {
    type: 'done',
    response: { parts, stop: 'stop', usage: { inputTokens: 10, outputTokens: 5 }, model: 'scripted', provider: 'scripted' },
  }
}

/** Runs one prompt to its end; `on` receives each event as it arrives. */
export async function collect(agent: Agent, prompt: string, on: (event: AgentEvent) => unknown = () => {}): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  for await (const event of agent.run(prompt)) {
    events.push(event)
    await on(event)
  }
  return events
}

/** Returns the event types of a run in one line, without partial texts. */
export function kinds(events: readonly AgentEvent[]): string {
  return events
    .filter((event) => event.type !== 'text' || !event.isPartial)
    .map((event) => event.type)
    .join(' ')
}
