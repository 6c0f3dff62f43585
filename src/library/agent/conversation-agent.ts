/** Makes an agent of a conversation of this process: the library and the stdio channel use the same one. */

import type { Conversation, ConversationChoice, ConversationOptions, Host, Setup } from '../../host/api.ts'
import { patchText } from '../../host/changes/patch-text.ts'
import { FailureError } from '../../host/failure.ts'
import { openHost } from '../../host/open/open-host.ts'
import { standingTools } from '../../host/run/conversation.ts'
import type { SourcedTool, ToolSelection } from '../../host/toolset/contract.ts'
import { builtInNames } from '../../host/toolset/tool-selection.ts'
import { lazy } from '../../kit/lazy.ts'
import { sha256 } from '../../kit/sha256.ts'
import { didYouMean } from '../../kit/text.ts'
import { modelCallProvider, withUsableReplies } from '../../providers/model-call.ts'
import type { ChangeSet } from '../../runtime/changes.ts'
import type { ModeChange } from '../../runtime/create-agent.ts'
import type { Risk } from '../../runtime/event.ts'
import type { Picture, Provider } from '../../runtime/port.ts'
import { type PreparedThread, prepareThread } from '../../runtime/threads/prepare-thread.ts'
import type { AnyUserThread } from '../../runtime/threads/thread.ts'
import { ThreadFailure } from '../../runtime/threads/thread-failure.ts'
import { parseDescription } from '../../tools/executable/description.ts'
import { done } from '../../tools/tool-kind.ts'
import {
  type AskedChanges,
  type BraidClaw,
  closedTurn,
  type DescribedTool,
  describeTool,
  executeTool,
  type OwnTool,
  type ProgramParts,
  type TurnExtras,
  turnExtrasOf,
} from './agent-api.ts'
import type { WiggumTurn } from './wiggum-agent.ts'

type Opened = {
  readonly host: Host
  readonly conversation: Conversation
  readonly brought: Pick<ConversationOptions, 'provider' | 'tools' | 'threads'>
}

/** `threads` gets what `addThread` adds before the first run. */
type Brought = ProgramParts & { readonly provider?: Provider | undefined; readonly threads?: PreparedThread[] }

export type Opening = {
  readonly setup: Setup
  readonly which: ConversationChoice
  readonly options: Omit<ConversationOptions, 'provider' | 'tools' | 'threads'>
}

/** `wiggum`: the mode of the turns to come. `inCopy`: the latest turn in that mode. */
type AgentState = { closed: boolean; wiggum?: ModeChange | undefined; inCopy?: WiggumTurn | undefined }

/**
 * `opening` is called by the first run, and again after a failure; `workspace` is told to the tools. @throws Error when the schema of a tool
 * cannot be written as JSON Schema
 */
export function conversationAgent(parts: Brought, workspace: string, opening: () => Opening): BraidClaw {
  const { tools, threads = [], checks = [], ...own } = parts
  const described = tools.filter(({ builtin }) => builtin === undefined).map((tool) => ({ tool, spec: describeTool(tool) }))
  const offered = () => described.map(({ tool, spec }) => offer(tool, spec, workspace))
  const opened = lazy(async () => open(opening(), { ...own, threads }, offered()))
  const state: AgentState = { closed: false }
  const conversation = () => state.inCopy?.conversation() ?? opened.current()?.conversation
  const stops = new Set<AbortController>()

  const run: BraidClaw['run'] = async function* (prompt, options) {
    const { signal, images = [] } = turnExtrasOf(options)
    if (state.closed) return yield* closedTurn()
    const stop = new AbortController()
    stops.add(stop)
    try {
      const { host, conversation: current, brought } = await opened.get()
      const both = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal
      state.inCopy = undefined
      if (state.wiggum === undefined) return yield* current.run({ text: prompt, pictures: await readImages(host, images) }, both)
      if (images.length > 0) throw new FailureError('usage', noImages)
      const { createWiggumTurn } = await import('./wiggum-agent.ts')
      state.inCopy = createWiggumTurn({ host, brought, checks, prompt, mode: state.wiggum, signal: both })
      yield* state.inCopy.events()
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
    changes: async (gateId) => withPatch(await conversation()?.changesOf(gateId)),
    gate: (gateId) => conversation()?.gate(gateId),
    cancel() {
      for (const stop of stops) stop.abort()
    },
    setMode: async (change) => {
      if (state.closed) return 'modes: this agent is closed'
      const inCopy = change.newMode === 'wiggum' && checks.length > 0
      const rejected = inCopy ? await whyNoWiggum(stops.size > 0, opening) : await (await opened.get()).conversation.setMode(change)
      if (rejected === undefined) state.wiggum = inCopy ? change : undefined
      return rejected
    },
    ending: () => (state.inCopy ? state.inCopy.ending() : conversation()?.ending()),
    conversationId: () => conversation()?.id,
    runId: () => conversation()?.runId(),
    async close() {
      state.closed = true
      await (await opened.settled())?.host.close()
    },
  }
}

const noImages = 'images: a turn in wiggum mode takes none; name the files in the prompt'

async function readImages({ setup }: Host, images: NonNullable<TurnExtras['images']>): Promise<readonly Picture[]> {
  return images.length === 0 ? [] : (await import('../../host/run/pictures.ts')).picturesOf(setup, images)
}

function withPatch(set: ChangeSet | undefined): AskedChanges | undefined {
  return set && { ...set, patch: patchText(set) }
}

/** @returns undefined when a turn in a copy can begin */
async function whyNoWiggum(isBusy: boolean, opening: () => Opening): Promise<string | undefined> {
  if (isBusy) return 'modes: a run keeps its mode; set the mode when it has ended'
  const { sandboxState } = await import('../../host/toolset/sandbox/command-sandbox.ts')
  const trial = await sandboxState(opening().setup)
  return trial.ok ? undefined : `modes: wiggum mode needs the sandbox: ${trial.missing}`
}

/** Opens a host for one conversation; the agent closes it. @throws what openHost and conversation throw */
async function open({ setup, which, options }: Opening, brought: Omit<Brought, 'tools'>, offered: readonly SourcedTool[]): Promise<Opened> {
  const { rules, threads, modelCall, provider = modelCall && modelCallProvider(modelCall) } = brought
  const own = { threads, provider: provider && withUsableReplies(provider) }
  const tools = offered.length === 0 ? {} : { tools: withOffered(await standingTools(setup), offered) }
  const host = await openHost({ ...setup, ownRules: rules }, { ahead: provider === undefined })
  try {
    return { host, conversation: await host.conversation(which, { ...options, ...own, ...tools }), brought: { ...own, ...tools } }
  } catch (error) {
    await host.close()
    throw error
  }
}

const risks: readonly Risk[] = ['low', 'medium', 'high']

/** The executor's own limit is shorter, so that its advice is shown. */
const longestMs = 24 * 60 * 60 * 1_000

/** Makes a tool of the host: the program executes it, so the gate judges it by its risk alone. @throws FailureError `usage` */
function offer(tool: OwnTool, { risk, ...described }: DescribedTool, cwd: string): SourcedTool {
  const read = parseDescription(JSON.stringify(described))
  if (!read.ok) throw wrong(tool.name, `it ${read.why}`)
  const { name, description, parameters } = read.spec
  if (!risks.includes(risk))
    throw wrong(name, `its risk ${JSON.stringify(risk)} is not low, medium or high${didYouMean(String(risk), risks)}`)
  if (builtInNames.includes(name)) throw wrong(name, 'a built-in tool has that name; rename it')
  return {
    ...read.spec,
    risk,
    source: 'program',
    sha256: sha256(JSON.stringify([name, description, parameters, risk])),
    changed: () => undefined,
    timeoutMs: longestMs,
    idempotent: false,
    touches: () => [],
    invoke: async (input, { signal }) => done(await executeTool(tool, input, { signal, cwd })),
  }
}

/** Adds the tools to a selection. @throws FailureError `usage` that names the first tool that has the name of another one */
function withOffered(selection: ToolSelection, given: readonly SourcedTool[]): ToolSelection {
  const names = given.map(({ name }) => name)
  const again = names.find((name, at) => names.indexOf(name) < at)
  if (again !== undefined) throw wrong(again, 'two tools have that name; rename one of them')
  const state: { found?: readonly SourcedTool[] | undefined; all: readonly SourcedTool[] } = { all: given }
  return {
    ...selection,
    async more(deps) {
      const found = await selection.more?.(deps)
      if (found === undefined || found === state.found) return state.all
      const twice = found.find(({ name }) => names.includes(name))
      if (twice) throw wrong(twice.name, 'an executable of tools.executables has that name; rename one of them')
      Object.assign(state, { found, all: [...found, ...given] })
      return state.all
    },
  }
}

function wrong(name: unknown, why: string): FailureError {
  return new FailureError('usage', `tool ${JSON.stringify(name)} of the calling program is not offered: ${why}`)
}
