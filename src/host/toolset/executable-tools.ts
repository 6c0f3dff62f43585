/** Offers the operator's executables as tools of a turn: it picks the folder, checks its trust, and reports refused files. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createTrust } from '../../config/trust.ts'
import { atEnd } from '../../kit/errors.ts'
import { canonical, isJsonObject, type JsonObject } from '../../kit/json.ts'
import { lazy } from '../../kit/lazy.ts'
import { didYouMean } from '../../kit/text.ts'
import type { Message, Provider, Schema } from '../../runtime/port.ts'
import type { ChildEnvironment, SandboxKind } from '../../sandbox/contract.ts'
import { quoteText } from '../../security/command/syntax/quote.ts'
import type { Policy } from '../../security/policy.ts'
import { weaknessOf } from '../../security/redaction/secret-forms.ts'
import { isUnder, judgePath } from '../../security/targets/path.ts'
import { createSource, type ExecutableSurvey } from '../../tools/executable/executable-source.ts'
import { createStore } from '../../tools/executable/executable-store.ts'
import type { Executable } from '../../tools/executable/executable-tool.ts'
import { cleanEnvironment } from '../../tools/process.ts'
import type { Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import { policyOf } from '../setup/effective-policy.ts'
import type { SourcedTool, ToolDeps, ToolSource } from './contract.ts'
import { pluginTools, warnOnce } from './guests/plugins/plugin-tools.ts'
import { createConfinement } from './sandbox/command-sandbox.ts'
import { approvedPlugins, approvedServers, builtInNames, namedCall } from './tool-selection.ts'

/** A name that a list of tools requests, with the schema from that list. */
export type ListedTool = { readonly name: string; readonly parameters?: Schema }

export type ExecutablesRequest = {
  /** A folder, or one executable. */
  readonly at: string
  /** Absent: all executables there. */
  readonly asked?: readonly ListedTool[]
  /** The requester, for messages. With it a missing folder or name ends the command; without it the log has a warning. */
  readonly by?: string
}

/** Returns a function that surveys a folder's executables. Descriptions stay cached as long as the caller uses the same function. */
function surveyor(
  setup: Setup,
  at: string,
  deps: Omit<ToolDeps, 'sandboxOn' | 'closed'>,
  askAgain = false,
): () => Promise<ExecutableSurvey> {
  const { config, paths, context } = setup
  const policy = policyOf(config, paths, context.env)
  return createSource({
    at,
    store: createStore(join(paths.home, 'run', 'tools'), Date.now),
    around: { ...deps, workspace: policy.workspace },
    builtIn: builtInNames,
    untrusted: untrusted(policy, createTrust(paths.trustedFolders).isTrusted),
    riskOf: (name) => (config.security.allowTools.includes(name) ? 'low' : 'medium'),
    envOf: (name) => variablesFor(name, setup),
    readOnly: config.security.autonomy === 'readonly',
    maxOutputBytes: deps.maxOutputBytes,
    askAgain,
  })
}

/** Redacts the values from now on, unless they are paths, of which the output of a tool is full. */
function variablesFor(tool: string, { config, context, redactor }: Setup): ChildEnvironment {
  const names = config.tools.env.flatMap((word) => {
    const [name = '', only] = word.split(':').toReversed()
    return only === undefined || only === tool ? [name] : []
  })
  const given = names.flatMap((name) => (context.env[name] === undefined ? [] : [[name, context.env[name]] as const]))
  for (const [name, value] of given) if (!value.startsWith('/') && !weaknessOf(value)) redactor.register(value, name)
  return Object.fromEntries(given)
}

type Surveying = { readonly at: string; readonly sandbox?: SandboxKind; readonly askAgain?: boolean }

/** Surveys a folder outside a turn. */
export async function surveyNow(setup: Setup, { at, sandbox = 'auto', askAgain }: Surveying): Promise<ExecutableSurvey> {
  const { config, paths, context } = setup
  const policy = policyOf(config, paths, context.env)
  const confinement = createConfinement(sandbox, { setup, policy })
  const env = cleanEnvironment({ home: policy.workspace })
  const deps = { spawn: confinement.spawn, env, maxOutputBytes: config.limits.maxResultBytes, ready: confinement.mode }
  using _end = atEnd(() => confinement.close())
  return await surveyor(setup, at, deps, askAgain)()
}

/**
 * Refuses folders that the model or the author of the workspace can write, because the writer of a tool decides what runs. A tool may read
 * its folder, so that folder must not contain our files.
 */
function untrusted(policy: Policy, isTrusted: (folder: string) => boolean): (folder: string) => string | undefined {
  return (folder) => {
    const ours = [policy.workspace, policy.home, ...policy.protectedPaths].find((path) => isUnder(path, folder))
    if (ours !== undefined) return `a tool may read its folder, and ${folder} holds ${ours}; make a folder for your tools alone`
    const inside = isUnder(folder, policy.workspace)
    const writable = inside || judgePath({ path: folder, access: 'write', cwd: policy.workspace, policy }).ok
    if (!writable || isTrusted(folder)) return undefined
    return `it lies where the model's own tools may write${inside ? ', in the workspace' : ''}; move it out, or run: braidclaw trust ${quoteText(folder)}`
  }
}

/** Returns a source that is queried before each turn; it reports each finding once. */
export function executablesFrom(setup: Setup, { at, asked, by }: ExecutablesRequest): ToolSource {
  const state: {
    surveyFolder?: () => Promise<ExecutableSurvey>
    from?: readonly Executable[]
    offered: readonly Executable[]
    first: boolean
  } = { offered: [], first: true }
  const tell = warnOnce(setup)
  const fault = (line: string) => {
    if (by !== undefined && state.first) throw new FailureError('usage', `${by}: ${line}`)
    tell(line)
  }

  return async (deps) => {
    state.surveyFolder ??= surveyor(setup, at, deps)
    const survey = await state.surveyFolder()
    if (!survey.ok) {
      fault(survey.why)
      return []
    }
    for (const { path, why, known = false } of survey.refused)
      if (!known || asked === undefined) tell(`tool ${path} is not offered: ${why}`)
    if (state.from !== survey.tools || state.first) state.offered = choose({ survey, asked, at, fault, tell })
    state.from = survey.tools
    state.first = false
    return state.offered
  }
}

type ExecutableChoice = {
  readonly survey: Extract<ExecutableSurvey, { ok: true }>
  readonly asked: readonly ListedTool[] | undefined
  readonly at: string
  readonly fault: (line: string) => void
  readonly tell: (line: string) => void
}

function choose({ survey, asked, at, fault, tell }: ExecutableChoice): readonly Executable[] {
  if (asked === undefined) return survey.tools
  const names = survey.tools.map(({ name }) => name)
  for (const { name, parameters } of asked) {
    const found = survey.tools.find((tool) => tool.name === name)
    if (!found) fault(missing({ name, names, at, survey }))
    else if (parameters && canonical(parameters) !== canonical(found.parameters))
      tell(`tool ${found.source} describes other parameters for "${name}" than the list of tools does; its own are used`)
  }
  return survey.tools.filter((tool) => asked.some(({ name }) => name === tool.name))
}

function missing({
  name,
  names,
  at,
  survey,
}: Pick<ExecutableChoice, 'survey' | 'at'> & { name: string; names: readonly string[] }): string {
  const refused = survey.refused.map(({ path, why }) => `${path}: ${why}`).join('; ')
  const near = didYouMean(name, [...builtInNames, ...names])
  return `no tool "${name}": neither built in nor an executable in ${at}${near}${refused === '' ? '' : ` (not offered there: ${refused})`}`
}

/** Returns what every turn offers besides the built-in tools: the executables that the configuration names, and the plugins. */
export function standingExecutables(setup: Setup): ToolSource {
  const { dir, executables } = setup.config.tools
  const named = executables.map((name) => ({ name }))
  return withGuests(setup, named.length === 0 ? undefined : executablesFrom(setup, { at: dir, asked: named })) ?? nothing
}

const nothing: ToolSource = async () => []

/** Returns the source together with the plugins and the MCP servers of the home, if any was approved. */
export function withGuests(setup: Setup, own: ToolSource | undefined): ToolSource | undefined {
  const { home } = setup.paths
  const guests = [
    ...(existsSync(approvedPlugins(home)) ? [pluginTools(setup)] : []),
    ...(existsSync(approvedServers(home)) ? [serverTools(setup)] : []),
  ]
  return guests.reduce((all, guest) => (all === undefined ? guest : mergeSources(setup, all, guest)), own)
}

function serverTools(setup: Setup): ToolSource {
  const source = lazy(async () => (await import('./guests/mcp/mcp-tools.ts')).mcpTools(setup))
  return async (deps) => (await source.get())(deps)
}

/** A tool of the first source has precedence over one of the second. Returns the same array while neither source changes. */
export function mergeSources({ log }: Pick<Setup, 'log'>, first: ToolSource, second: ToolSource): ToolSource {
  const last: { of: readonly (readonly SourcedTool[])[]; all: readonly SourcedTool[] } = { of: [], all: [] }
  return async (deps) => {
    const found = [await first(deps), await second(deps)]
    if (found.every((tools, at) => tools === last.of[at]) && last.of.length > 0) return last.all
    const [ours = [], theirs = []] = found
    const clashing = theirs.filter((tool) => ours.some(({ name }) => name === tool.name))
    for (const { name, source } of clashing) {
      const place = source === 'claw' ? "the claw's" : `${source}:`
      log('warn', 'tool refused', { why: `${place} "${name}" has the name of a tool of yours; rename one of them` })
    }
    Object.assign(last, { of: found, all: [...ours, ...theirs.filter((tool) => !clashing.includes(tool))] })
    return last.all
  }
}

/** Replaces calls of use_tool by the calls that they name, before anything is judged, recorded or shown. */
export function withNamedCalls(provider: Provider): Provider {
  const named = <P extends { readonly name: string; readonly input: JsonObject }>(call: P): P => {
    const { tool, arguments: input } = call.input
    return call.name === namedCall && typeof tool === 'string' && isJsonObject(input) ? { ...call, name: tool, input } : call
  }
  return {
    ...provider,
    async *chat(request, signal) {
      for await (const chunk of provider.chat(request, signal)) {
        if (chunk.type !== 'done') yield chunk
        else {
          const parts = chunk.response.parts.map((part) => (part.type === 'call' ? named(part) : part))
          yield { ...chunk, response: { ...chunk.response, parts, tool_calls: chunk.response.tool_calls?.map(named) } }
        }
      }
    },
  }
}

/** Words refusals for the model as the tool-loop contract does: `Tool not permitted: why`. */
export function withContractRefusals(provider: Provider): Provider {
  const plain = (message: Message) =>
    message.role === 'tool' && message.isError
      ? { ...message, content: message.content.replace(/^Denied(?: by|:) /, 'Tool not permitted: ') }
      : message
  return { ...provider, chat: (request, signal) => provider.chat({ ...request, messages: request.messages.map(plain) }, signal) }
}
