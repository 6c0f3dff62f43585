/** Records runs of the real agent and reads their journal back from disk, for tests of replays. */

import type { AnyThread } from '../../kernel/thread.ts'
import type { ChangeReview } from '../changes.ts'
import { type Agent, type AgentConfig, createAgent } from '../create-agent.ts'
import type { AgentEvent, Judgement, Part, RunEvent } from '../event.ts'
import { applied } from '../outcome.ts'
import { ProviderFailure, type RecordEntry, type Recorder } from '../port.ts'
import type { RunLimits } from '../program.ts'
import { prepareThreads } from '../threads/prepare-thread.ts'
import type { AnyUserThread } from '../threads/thread.ts'
import type { ReplayEntry } from './external-entry.ts'

export const limits: RunLimits = { maxToolRounds: 5, maxParallel: 4 }

export type Script = {
  replies: {
    text?: string
    thinking?: string
    calls?: { id: string; input?: { [name: string]: string } }[]
    fail?: boolean
    pieces?: number
  }[]
  verdicts?: { [id: string]: Partial<Judgement> }
  /** The reviews of what calls change on their view. */
  reviews?: { [id: string]: ChangeReview }
  limits?: Partial<RunLimits>
  rules?: AnyThread<RunEvent>[]
  threads?: AnyUserThread[]
}

/** Runs the real agent and returns what its recorder received, as read back from disk. */
export async function live(script: Script, on?: (event: AgentEvent, agent: Agent) => unknown) {
  const written: Omit<ReplayEntry, 'seq'>[] = []
  const agent = createAgent({
    conversationId: 'c',
    channel: 'test',
    approvalTtlMs: 60_000,
    limits: { ...limits, ...script.limits },
    model: 'scripted',
    opening: () => ({ history: [], systemPrompt: 's', tools: [] }),
    rules: script.rules,
    threads: prepareThreads(script.threads ?? []),
    ports: { ...ports(script), recorder: recorder((entry) => void written.push(entry)) },
  })
  const events: AgentEvent[] = []
  for await (const event of agent.run('go')) {
    events.push(event)
    await on?.(event, agent)
  }
  const entries: ReplayEntry[] = written.map((entry, at) => ({ ...entry, seq: 100 + at, body: JSON.parse(JSON.stringify(entry.body)) }))
  return { entries, runId: agent.runId() ?? '', shown: events.filter((event) => event.type !== 'text' || !event.isPartial) }
}

function recorder(write: (entry: Omit<ReplayEntry, 'seq'>) => void): Recorder {
  return {
    commit: async (_run, batch) => {
      for (const entry of batch.flatMap((each) => journalled(each) ?? [])) write(entry)
      return { receipts: new Map(), earlier: new Map(), unusable: new Map() }
    },
  }
}

/** Returns what the journal has of one entry of a batch. */
export function journalled(entry: RecordEntry): Omit<ReplayEntry, 'seq'> | undefined {
  if (entry.kind === 'external') {
    const { event } = entry
    const body = event.type === 'tool.done' ? { ...event, outcome: { ...event.outcome, receipt: 'rcp' } } : event
    return { kind: 'external', type: event.type, body }
  }
  if (entry.kind === 'intent') return { kind: 'intent', type: 'act', body: entry.act }
  if (entry.kind === 'apply') return { kind: 'intent', type: 'apply', body: entry.apply }
  if (entry.kind === 'dropped') return { kind: 'note', type: 'drop', body: { ...entry.drop, receipt: 'rcp' } }
  if (entry.kind === 'denied') return { kind: 'note', type: 'deny', body: { ...entry.deny, receipt: 'rcp' } }
  if (entry.kind === 'retry') return { kind: 'note', type: 'retry', body: entry.retry }
  if (entry.kind === 'finish') return { kind: 'note', type: 'finish', body: { ...entry.finish, digest: entry.digest } }
}

function ports({ replies, verdicts = {}, reviews = {} }: Script): Omit<AgentConfig['ports'], 'recorder'> {
  const asked = replies.values()
  return {
    provider: {
      name: 'scripted',
      capabilities: () => ({ streaming: true, tools: true, thinking: true, contextTokens: 100_000 }),
      async *chat() {
        const { text, thinking, calls = [], fail, pieces = 0 } = asked.next().value ?? {}
        if (fail) throw new ProviderFailure('auth', 'scripted')
        for (let piece = 0; piece < pieces; piece++) yield { type: 'text', text: 'x' }
        const parts: Part[] = [
          ...(thinking ? [{ type: 'thinking', text: thinking } as const] : []),
          ...(text ? [{ type: 'text', text } as const] : []),
          ...calls.map(({ id, input = {} }) => ({ type: 'call', id, name: 'tool', input }) as const),
        ]
        yield {
          type: 'done',
          response: { parts, stop: 'stop', usage: { inputTokens: 10, outputTokens: 5 }, model: 'scripted', provider: 'scripted' },
        }
      },
    },
    judge: async ({ id }) => ({
      verdict: 'allow',
      risk: 'low',
      rule: 'test',
      reason: 'test',
      plan: `plan-${id}`,
      summary: id,
      writes: [],
      ...verdicts[id],
    }),
    act: async ({ id }) =>
      id === 'd'
        ? { status: 'failed', output: 'half', error: 'it broke' }
        : { status: 'allowed', output: `did ${id.replace(/\d+$/, '')}`, ...(reviews[id] ? { changes: reviews[id] } : {}) },
    changes: { apply: async ({ review }, _signal, ran) => applied(ran, review), drop: () => {} },
    questions: { answered: () => undefined, watch: () => () => {} },
    log: () => {},
    redact: (value) => value,
    redactStream: () => ({ push: (piece) => piece, flush: () => '' }),
    now: () => 1000,
    after: () => () => {},
    random: (bytes) => new Uint8Array(bytes).fill(7),
  }
}

export const yes = async (event: AgentEvent, agent: Agent): Promise<void> => {
  if (event.type === 'approval_gate') await agent.approve(event.gateId, { allow: true, by: 'ann' })
}

/** Has calls that run, fail, are refused and need approval, and an answer. */
export const eventful: Script = {
  replies: [
    { thinking: 'hm', text: 'I look', calls: [{ id: 'a', input: { b: '1', 2: 'x' } }, { id: 'b' }, { id: 'c' }] },
    { calls: [{ id: 'd' }], text: 'again' },
    { text: 'done: ü 😀 \u2028' },
  ],
  verdicts: { b: { verdict: 'deny', rule: 'path.outside', reason: 'no' }, c: { verdict: 'ask', risk: 'medium' } },
}
