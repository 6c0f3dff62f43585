/** Makes an agent of a conversation of this process: the library and the stdio channel use the same one. */

import type { Conversation, ConversationChoice, ConversationOptions, Host, Setup } from '../../host/api.ts'
import { openHost } from '../../host/open/open-host.ts'
import type { ProgramTool } from '../../host/toolset/own-tools.ts'
import { lazy } from '../../kit/lazy.ts'
import type { AgentEvent } from '../../runtime/event.ts'
import { type PreparedThread, prepareThread } from '../../runtime/threads/prepare-thread.ts'
import type { AnyUserThread } from '../../runtime/threads/thread.ts'
import { ThreadFailure } from '../../runtime/threads/thread-failure.ts'
import type { BraidClaw } from './agent-api.ts'
import { describeTool, executeTool, type OwnTool } from './own-tool.ts'

export type Opened = { readonly host: Host; readonly conversation: Conversation }

/** Opens a host for one conversation; the agent closes it. @throws what openHost and conversation throw */
export async function openFor(setup: Setup, which: ConversationChoice, options: ConversationOptions): Promise<Opened> {
  const host = await openHost(setup, { ahead: options.provider === undefined })
  try {
    return { host, conversation: await host.conversation(which, options) }
  } catch (error) {
    await host.close()
    throw error
  }
}

/** `open` is called by the first run, and again after a failure. `threads` gets what `addThread` adds before that. */
export function conversationAgent(open: () => Promise<Opened>, threads: PreparedThread[] = []): BraidClaw {
  const opened = lazy(open)
  const state = { closed: false }
  const conversation = () => opened.current()?.conversation
  const stops = new Set<AbortController>()

  async function* run(prompt: string, signal?: AbortSignal): AsyncGenerator<AgentEvent> {
    if (state.closed) return yield* closed
    const stop = new AbortController()
    stops.add(stop)
    try {
      const current = (await opened.get()).conversation
      yield* current.run(prompt, signal ? AbortSignal.any([signal, stop.signal]) : stop.signal)
    } finally {
      stops.delete(stop)
    }
  }

  async function addThread(given: AnyUserThread): Promise<string | undefined> {
    const current = (await opened.settled())?.conversation
    try {
      const thread = prepareThread(given)
      if (current) return await current.addThread(thread)
      if (threads.some(({ name }) => name === thread.name)) return `thread "${thread.name}" is there already; give this one another name`
      threads.push(thread)
    } catch (error) {
      if (error instanceof ThreadFailure) return error.message
      throw error
    }
  }

  return {
    run,
    addThread,
    // Before the first run no gate can be open.
    approve: async (gateId, { allow, by = 'program', note, part }) => {
      const current = conversation()
      return current ? await current.approve(gateId, { allow, by, ...(note ? { note } : {}), ...(part ? { part } : {}) }) : 'approval'
    },
    changes: async (gateId) => {
      const set = await conversation()?.changesOf(gateId)
      if (!set) return undefined
      const { patchText } = await import('../../host/changes/patch-text.ts')
      return { ...set, patch: patchText(set) }
    },
    gate: (gateId) => conversation()?.gate(gateId),
    cancel() {
      for (const stop of stops) stop.abort()
    },
    setMode: async (change) => {
      const current = conversation()
      return current ? await current.setMode(change) : 'modes'
    },
    ending: () => conversation()?.ending(),
    conversationId: () => conversation()?.id,
    runId: () => conversation()?.runId(),
    async close() {
      state.closed = true
      await (await opened.settled())?.host.close()
    },
  }
}

const closed: readonly AgentEvent[] = [
  { type: 'error', code: 'closed', message: 'this agent is closed; create another one', recoverable: false },
  { type: 'done', stopReason: 'error' },
]

/** Returns the tools as the host takes them. @throws Error when the schema of one cannot be written as JSON Schema */
export function programTools(tools: readonly OwnTool[], cwd: string): readonly ProgramTool[] {
  return tools
    .filter(({ builtin }) => builtin === undefined)
    .map((tool) => ({ ...describeTool(tool), execute: (input, signal) => executeTool(tool, input, { signal, cwd }) }))
}
