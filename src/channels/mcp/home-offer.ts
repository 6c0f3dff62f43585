/** Offers a home to a client of the Model Context Protocol: its tools behind the gate, its agent, and its records to read. */

import { z } from 'zod'
import { version } from '../../../package.json'
import type { Conversation, ConversationOptions, Host } from '../../host/api.ts'
import type { HostRecords, Owner } from '../../host/contract/records-api.ts'
import { FailureError } from '../../host/failure.ts'
import { repeatedCall } from '../../host/toolset/direct-call.ts'
import { usableSkills } from '../../host/toolset/discover.ts'
import type { JsonObject } from '../../kit/json.ts'
import { lazy } from '../../kit/lazy.ts'
import { createQueue } from '../../kit/queue.ts'
import { createId } from '../../kit/sha256.ts'
import type { CallContext, CallStep, McpOffer } from '../../mcp/server/mcp-server.ts'
import type { AgentEvent, Ending } from '../../runtime/event.ts'
import type { Schema } from '../../runtime/port.ts'
import { questionLines } from '../outbox/ask-in-channel.ts'
import { type ChannelTurn, refusedBy, takeTurn } from '../take-turn.ts'

export type McpCaller = {
  readonly host: Pick<Host, 'conversation' | 'records' | 'setup'>
  /** The limits, tools and sandbox of its conversations. */
  readonly options: Omit<ConversationOptions, 'channel'>
  /** Names the client in records. */
  readonly name: string
  readonly may: { readonly [what in 'call' | 'agent' | 'read' | 'approve']: boolean }
  readonly owner?: Owner | undefined
  sees(conversationId: string): boolean
  /** Called with each conversation that begins for this client. */
  begun?(conversationId: string): void
}

const agentTurn = z.strictObject({
  message: z.string().min(1).max(900_000).describe('What to do'),
  conversation_id: z.string().max(100).optional().describe('Continues the conversation that an earlier turn named'),
  max_tokens: z.int().min(1).optional().describe('The most tokens of this turn; the limits of the home hold too'),
})
const page = z.strictObject({ after: z.int().min(0).optional(), limit: z.int().min(1).max(500).optional() })
const check = z.strictObject({ deep: z.boolean().optional().describe('Also compare with the journal') })

const resources = [
  { uri: 'braidclaw://receipts', name: 'receipts', description: 'The newest receipts' },
  { uri: 'braidclaw://runs', name: 'runs', description: 'The newest runs' },
  { uri: 'braidclaw://runs/{id}', name: 'run', description: 'What happened in a run' },
  { uri: 'braidclaw://sessions', name: 'sessions', description: 'The latest conversations' },
  { uri: 'braidclaw://sessions/{id}', name: 'session', description: 'The messages of a conversation' },
]

const agentChannel = 'mcp-agent'
/** Counts the turns of all processes of a home: an agent whose MCP server is its own home would call itself without end. */
const mostAgentTurns = 8

/** `turns` is shared by all clients of this process. */
export function createHomeOffer(caller: McpCaller, turns: { running: number }): McpOffer {
  const { host, may } = caller
  const calls = createToolCalls(caller)
  const own = [
    may.agent &&
      ownTool(agentTurn, 'agent_turn', 'Lets the agent of BraidClaw work on a message; returns its answer', (input, context) =>
        callAgent(caller, turns, input, context),
      ),
    may.read &&
      ownTool(page, 'receipts_list', 'Lists receipts of calls, oldest first; without "after" the newest ones', async (asked) =>
        jsonResult(receiptsOf(caller, await host.records(), asked)),
      ),
    may.read &&
      ownTool(check, 'receipts_verify', 'Checks that no receipt was altered or removed', async (how) => {
        const checked = await (await host.records()).receipts.verify(how)
        return jsonResult(checked, !checked.ok)
      }),
  ].filter((tool) => tool !== false)
  const ownNamed = (name: string) => own.find((each) => each.name === name)

  return {
    name: 'braidclaw',
    version,
    resources: may.read ? resources : [],
    async tools() {
      const offered = may.call ? await calls.tools() : []
      // The question of ask_user could reach nobody.
      return [...offered.filter(({ name }) => name !== 'ask_user' && !ownNamed(name)), ...own]
    },
    async call(name, input, context) {
      const tool = ownNamed(name)
      if (tool) return tool.call(input, context)
      if (!may.call) throw new Error(`the tool ${JSON.stringify(name)} is not offered to this token`)
      return calls.call(name, input, context)
    },
    read: async (uri) => (may.read ? readResource(caller, await host.records(), uri) : undefined),
    prompts: async () => (may.call ? usableSkills(host.setup) : []),
    async complete(template, begin) {
      if (!may.read) return []
      const [{ runs, conversations }, newest] = [await host.records(), { limit: 500, ownedBy: caller.owner }]
      const ofRuns = template === 'braidclaw://runs/{id}' ? runs.list(newest).runs.map(({ runId }) => runId) : []
      const isSessions = template === 'braidclaw://sessions/{id}'
      const ofSessions = isSessions ? conversations.list(newest).conversations.map(({ conversationId }) => conversationId) : []
      return [...ofRuns, ...ofSessions].filter((id) => id.startsWith(begin))
    },
  }
}

/** Runs calls one after the other, because a conversation has one turn at a time. A call that asks a person lets the others pass. */
function createToolCalls(caller: McpCaller) {
  const state = { last: Promise.resolve(), calls: openCalls() }

  /** Uses one conversation for many calls, so that the rules that watch where data goes see them together. */
  function openCalls() {
    const { next, provider } = repeatedCall()
    return { next, conversation: lazy(() => open(caller, { channel: 'mcp', provider, systemPrompt: '', past: () => ({ history: [] }) })) }
  }

  return {
    tools: async () => (await (await state.calls.conversation.get()).tools()).refresh(),
    async call(tool: string, input: JsonObject, context: CallContext): Promise<CallStep> {
      const [before, over] = [state.last, Promise.withResolvers<void>()]
      state.last = over.promise
      await before
      try {
        context.signal.throwIfAborted()
        const { calls } = state
        const conversation = await calls.conversation.get()
        calls.next(tool, input)
        const ended = () => {
          over.resolve()
          if (state.calls !== calls) void conversation.close()
        }
        const step = await beginTurn({ caller, conversation, prompt: `tool ${tool}`, gives: 'result', ended }, context)
        if (step.type === 'question') state.calls = openCalls()
        return step
      } finally {
        over.resolve()
      }
    },
  }
}

async function callAgent(caller: McpCaller, turns: { running: number }, input: z.output<typeof agentTurn>, context: CallContext) {
  assertRoom(turns.running)
  turns.running += 1
  const conversation = await openAgent(caller, input).catch((error: unknown) => {
    turns.running -= 1
    throw error
  })
  const ended = () => {
    turns.running -= 1
    void conversation.close()
  }
  return beginTurn({ caller, conversation, prompt: input.message, gives: 'answer', ended }, context)
}

async function openAgent(caller: McpCaller, { conversation_id: id, max_tokens: tokens }: z.output<typeof agentTurn>) {
  const { runs } = (await caller.host.records()).runs.list({ limit: 500 })
  assertRoom(runs.filter((each) => each.running && each.channel === agentChannel).length)
  if (id !== undefined && !caller.sees(id)) throw new Error(`the conversation ${JSON.stringify(id)} does not exist`)
  const scope = createId('mcp', crypto.getRandomValues(new Uint8Array(12)))
  const budget = { scope, window: 'ever', tokens, tokensKey: 'max_tokens', microsKey: 'max_usd' } as const
  return open(caller, { channel: agentChannel, ...(tokens === undefined ? {} : { budget }) }, id)
}

async function open({ host, options, begun }: McpCaller, settings: ConversationOptions, id?: string): Promise<Conversation> {
  const conversation = await host.conversation(id === undefined ? { kind: 'new' } : { kind: 'resume', id }, { ...options, ...settings })
  if (id === undefined) begun?.(conversation.id)
  return conversation
}

type ClientTurn = {
  readonly caller: McpCaller
  readonly conversation: Conversation
  readonly prompt: string
  /** Tells whether the result is that of the one call, or the answer of the agent. */
  readonly gives: 'result' | 'answer'
  /** Called when the turn has ended. */
  readonly ended: () => void
}

type Seen = { result?: Extract<AgentEvent, { type: 'tool_result' }>; answer?: string | undefined }

/** Runs a turn until its first question or its end; without `canAsk` questions stay open for an operator, and the result names them. */
function beginTurn(turn: ClientTurn, first: CallContext): Promise<CallStep> {
  const { conversation, prompt, caller } = turn
  const by = caller.name
  const questions = createQueue<CallStep>(Number.POSITIVE_INFINITY)
  const asked = questions.items()
  const [seen, state]: [Seen, { context: CallContext }] = [{}, { context: first }]

  const ask: ChannelTurn['onGate'] = async (gateId, proposal) => {
    void questions.push({
      type: 'question',
      message: questionLines(proposal, await conversation.changesOf(gateId)).join('\n'),
      closed: conversation.gateClosed(gateId),
      async answer(allow, context) {
        // Somebody else may have answered meanwhile.
        await conversation.approve(gateId, { allow, by })
        return next(context)
      },
    })
  }

  function show(event: AgentEvent): void {
    if (event.type === 'tool_use') state.context.progress(`calls ${event.toolName}`)
    if (event.type === 'tool_result') seen.result = event
    if (event.type === 'done') seen.answer = event.result
  }

  async function next(context: CallContext): Promise<CallStep> {
    state.context = context
    const cancel = () => conversation.cancel(by)
    context.signal.addEventListener('abort', cancel, { once: true })
    if (context.signal.aborted) cancel()
    try {
      const step = await Promise.race([ended, asked.next()])
      return 'stop' in step ? resultOf(turn, step, seen) : (step.value ?? resultOf(turn, await ended, seen))
    } finally {
      context.signal.removeEventListener('abort', cancel)
    }
  }

  const onGate = first.canAsk && caller.may.approve ? ask : refusedBy(conversation)
  const ended = takeTurn({ conversation, prompt, show, onGate }).finally(turn.ended)
  return next(first)
}

function resultOf({ conversation, gives }: ClientTurn, { code, message }: Ending, { result, answer }: Seen): CallStep {
  const waiting = conversation.unanswered().map((id) => `needs approval: braidclaw approvals allow ${id}`)
  if (gives === 'result') {
    const output = typeof result?.output === 'string' ? result.output : ''
    return { type: 'result', text: [output || message, ...waiting].join('\n'), isError: result?.status !== 'completed' }
  }
  const about = JSON.stringify({ conversation_id: conversation.id, run_id: conversation.runId(), ending: code })
  return { type: 'result', text: [answer || message, ...waiting, about].join('\n'), isError: code !== 'answered' }
}

function ownTool<Input extends z.ZodObject>(
  shape: Input,
  name: string,
  description: string,
  act: (input: z.output<Input>, context: CallContext) => Promise<CallStep>,
) {
  const { $schema: _, ...schema } = z.toJSONSchema(shape)
  return {
    ...{ name, description, parameters: schema as Schema },
    async call(input: JsonObject, context: CallContext): Promise<CallStep> {
      const read = shape.safeParse(input)
      if (!read.success) throw new Error(z.prettifyError(read.error))
      return act(read.data, context)
    },
  }
}

function assertRoom(running: number): void {
  if (running >= mostAgentTurns)
    throw new Error(`${mostAgentTurns} agent turns of MCP clients run in this home; call again when one has ended`)
}

function jsonResult(value: unknown, isError = false): CallStep {
  return { type: 'result', text: JSON.stringify(value), isError }
}

function receiptsOf({ owner, sees }: McpCaller, { receipts }: HostRecords, asked: z.output<typeof page>) {
  const found = receipts.page(asked)
  return { ...found, receipts: found.receipts.filter((each) => owner === undefined || sees(String(each.conversation_id))) }
}

/** Returns undefined for what does not exist, or is not for this client. */
async function readResource(caller: McpCaller, records: HostRecords, uri: string): Promise<unknown> {
  const [, kind, id] = /^braidclaw:\/\/(receipts|runs|sessions)(?:\/([\w-]{1,80}))?$/.exec(uri) ?? []
  const { owner: ownedBy, sees } = caller
  if (kind === 'receipts' && id === undefined) return receiptsOf(caller, records, {})
  try {
    if (kind === 'runs' && id === undefined) return records.runs.list({ ownedBy })
    if (kind === 'sessions' && id === undefined) return records.conversations.list({ ownedBy })
    if (kind === 'sessions' && id !== undefined && sees(id)) return records.conversations.read(id)
    const run = kind === 'runs' && id !== undefined && (await records.runs.show(id))
    return run && sees(run.conversationId) ? run : undefined
  } catch (error) {
    if (error instanceof FailureError && error.code === 'error') return undefined
    throw error
  }
}
