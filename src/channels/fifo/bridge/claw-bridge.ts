/** `bridge claw`: our tools for an agent that lists and calls them through two FIFOs; every call passes our gate and leaves a receipt. */

import type { Animal, Wish } from '../../../host/api.ts'
import { wake } from '../../../host/run/conversation.ts'
import { directCall } from '../../../host/toolset/direct-call.ts'
import { specOf } from '../../../host/toolset/tool-selection.ts'
import { frame } from '../../../kit/frames.ts'
import { isObject, type JsonObject } from '../../../kit/json.ts'
import { parseJson, readClawRequest } from '../../../kit/wire.ts'
import { toolOf } from '../../../providers/fifo/payload.ts'
import type { AgentEvent } from '../../../runtime/event.ts'
import type { Tool } from '../../../runtime/port.ts'
import { behindWire, takeTurn, unanswered } from '../../take-turn.ts'
import { type Bridging, linesFrom, writerTo } from './bridge-ends.ts'

export async function serveClaw(bridging: Bridging, { sandbox }: Pick<Wish, 'sandbox'>): Promise<void> {
  const { setup, dir, signal } = bridging
  const direct = turningCall()
  const animal = await wake(setup, {
    channel: 'claw',
    conversation: { kind: 'new' },
    provider: direct.provider,
    systemPrompt: '',
    // A call stands for itself: what was called before is in the journal, and nobody reads it here.
    past: () => ({ history: [] }),
    ...(sandbox ? { sandbox } : {}),
  })
  signal.addEventListener('abort', () => animal.agent.cancel('SIGTERM'), { once: true })
  try {
    const requests = linesFrom(bridging, 'claw_in')
    const answer = writerTo(bridging, 'claw_out')
    setup.context.process.stderr.write(`ready: our tools serve ${dir}; stop with Ctrl-C\n`)
    for await (const line of requests) {
      if (line.ok && line.text.trim() === '') continue
      await answer(frame(line.ok ? await respond({ bridging, animal, direct }, line.text) : `error: the line is ${line.error}`))
    }
  } finally {
    animal.close()
  }
}

type Claw = { readonly bridging: Bridging; readonly animal: Animal; readonly direct: ReturnType<typeof turningCall> }

async function respond(claw: Claw, text: string): Promise<string> {
  const request = readClawRequest(text)
  if (request.type === 'list') return JSON.stringify((await toolsOf(claw.animal)).map(specOf).map(toolOf))
  if (request.type === 'problem') return `error: the line has ${request.problem}; write list_tools, or name, tab, JSON`
  const input = request.input.trim() === '' ? {} : parseJson(request.input)
  if (!isObjectOfJson(input)) return `error: ${request.name}: the arguments are no JSON object`
  claw.direct.next(request.name, input)
  return call(claw, request.name)
}

/** Found anew for each list. The question of a tool could reach nobody here. */
async function toolsOf({ hands }: Animal): Promise<readonly Tool[]> {
  return (await (await hands()).refresh()).filter(({ name }) => name !== 'ask_user')
}

function isObjectOfJson(value: unknown): value is JsonObject {
  return isObject(value)
}

/** A refusal is said in words: the wire has no other place for it. How a yes is given is for people, not for whoever called. */
async function call({ bridging: { setup, signal }, animal }: Claw, name: string): Promise<string> {
  const seen: { result?: Extract<AgentEvent, { type: 'tool_result' }> } = {}
  const ending = await takeTurn({
    ...behindWire(setup, animal),
    prompt: `tool ${name}`,
    render: {
      show: (event) => {
        if (event.type === 'tool_result') seen.result = event
      },
      end: () => {},
    },
    signal,
  })
  for (const id of unanswered(animal)) setup.log('warn', 'approval needed', { tool: name, answer: `braidclaw approvals allow ${id}` })
  const output = typeof seen.result?.output === 'string' ? seen.result.output : ''
  return seen.result?.status === 'completed' ? output : `error: ${output || ending.message}`
}

/** One provider for all calls, so that they are one conversation. */
function turningCall() {
  const state = { current: directCall({ name: '', input: {} }) }
  return {
    next(name: string, input: JsonObject) {
      state.current = directCall({ name, input })
    },
    provider: { ...state.current, chat: (...asked: Parameters<(typeof state.current)['chat']>) => state.current.chat(...asked) },
  }
}
