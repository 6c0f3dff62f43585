/** Implements `bridge claw`: an agent lists and calls our tools through two FIFOs; every call passes our gate and leaves a receipt. */

import type { Conversation, ConversationOptions } from '../../../host/api.ts'
import { withConversation } from '../../../host/open/open-host.ts'
import { directCall } from '../../../host/toolset/direct-call.ts'
import { specOf } from '../../../host/toolset/tool-selection.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../../kit/json.ts'
import { frame } from '../../../kit/lines.ts'
import { readClawRequest } from '../../../kit/wire.ts'
import { toolOf } from '../../../providers/fifo/payload.ts'
import type { AgentEvent } from '../../../runtime/event.ts'
import type { Tool } from '../../../runtime/port.ts'
import { refusedBy, takeTurn } from '../../take-turn.ts'
import { type BridgeOptions, linesFrom, writerTo } from './bridge-ends.ts'

export async function serveClaw(bridging: BridgeOptions, { sandbox }: Pick<ConversationOptions, 'sandbox'>): Promise<void> {
  const { setup, dir, signal } = bridging
  const direct = turningCall()
  const options = {
    setup,
    which: { kind: 'new' },
    channel: 'claw',
    provider: direct.provider,
    systemPrompt: '',
    // Each call is independent: the journal has the earlier calls, and this provider does not read history.
    past: () => ({ history: [] }),
    ...(sandbox ? { sandbox } : {}),
  } as const
  await withConversation(options, async (conversation) => {
    signal.addEventListener('abort', () => conversation.cancel('SIGTERM'), { once: true })
    const requests = linesFrom(bridging, 'claw_in')
    const answer = writerTo(bridging, 'claw_out')
    setup.context.process.stderr.write(`ready: our tools serve ${dir}; stop with Ctrl-C\n`)
    for await (const line of requests) {
      if (line.ok && line.text.trim() === '') continue
      await answer(frame(line.ok ? await respond({ bridging, conversation, direct }, line.text) : `error: the line is ${line.error}`))
    }
  })
}

type Claw = { readonly bridging: BridgeOptions; readonly conversation: Conversation; readonly direct: ReturnType<typeof turningCall> }

async function respond(claw: Claw, text: string): Promise<string> {
  const request = readClawRequest(text)
  if (request.type === 'list') return JSON.stringify((await toolsOf(claw.conversation)).map(specOf).map(toolOf))
  if (request.type === 'problem') return `error: the line has ${request.problem}; write list_tools, or name, tab, JSON`
  const input = request.input.trim() === '' ? {} : parseJson(request.input)
  if (!isJsonObject(input)) return `error: ${request.name}: the arguments are no JSON object`
  claw.direct.next(request.name, input)
  return call(claw, request.name)
}

/** Looks for the tools again for each list. It omits ask_user, whose question could reach nobody here. */
async function toolsOf({ tools }: Conversation): Promise<readonly Tool[]> {
  return (await (await tools()).refresh()).filter(({ name }) => name !== 'ask_user')
}

/**
 * Reports a refusal as text, because the protocol has no other field for it. How to approve is logged for people, not sent to the caller.
 */
async function call({ bridging: { setup }, conversation }: Claw, name: string): Promise<string> {
  const seen: { result?: Extract<AgentEvent, { type: 'tool_result' }> } = {}
  const ending = await takeTurn({
    conversation,
    onGate: refusedBy(conversation),
    prompt: `tool ${name}`,
    show: (event) => {
      if (event.type === 'tool_result') seen.result = event
    },
  })
  for (const id of conversation.unanswered())
    setup.log('warn', 'approval needed', { tool: name, answer: `braidclaw approvals allow ${id}` })
  const output = typeof seen.result?.output === 'string' ? seen.result.output : ''
  return seen.result?.status === 'completed' ? output : `error: ${output || ending.message}`
}

/** Uses one provider for all calls, so that they form one conversation. */
function turningCall() {
  const state = { current: directCall({ name: '', input: {} }) }
  return {
    next(name: string, input: JsonObject) {
      state.current = directCall({ name, input })
    },
    provider: { ...state.current, chat: (...asked: Parameters<(typeof state.current)['chat']>) => state.current.chat(...asked) },
  }
}
