/** Defines which tools a turn may use. */

import { existsSync } from 'node:fs'
import { didYouMean } from '../../kit/text.ts'
import type { Log, Schema, ToolSpec } from '../../runtime/port.ts'
import type { BrowserDeps } from '../../tools/browser/browser.ts'
import type { Get } from '../../tools/builtin/http.ts'
import { toolKinds } from '../../tools/list.ts'
import type { ShellTimes, ToolKind } from '../../tools/tool-kind.ts'
import type { HostContext, Setup } from '../api.ts'
import type { StandingSetup, ToolSelection } from './contract.ts'

export function hasTools({ builtIn, more }: ToolSelection): boolean {
  return builtIn.length > 0 || more !== undefined
}

/** Returns the file that names the approved plugins. */
export function approvedPlugins(home: string): string {
  return `${home}/plugins/approved.json`
}

/** Returns the file that names the approved MCP servers and their tools. */
export function approvedServers(home: string): string {
  return `${home}/mcp/approved.json`
}

/** Tells whether every turn offers executables that the configuration names, plugins, or tools of MCP servers. */
export function hasStandingTools({ config: { tools }, paths: { home } }: StandingSetup): boolean {
  return tools.executables.length > 0 || existsSync(approvedPlugins(home)) || existsSync(approvedServers(home))
}

export const builtInTools: ToolSelection = { builtIn: 'all' }

type OptionalTool = ToolKind<Schema, { readonly get: Get } & BrowserDeps>

type OptionalSetup = Pick<Setup, 'config'> & { readonly context: Pick<HostContext, 'env'> }

export type Limited = {
  readonly shellTimes: ShellTimes
  readonly toolsAllow?: readonly string[]
  readonly schedules?: boolean | undefined
  readonly more?: readonly ToolSpec[] | undefined
}

/** `toolsAllow` is the operator's list; a selection cannot go beyond it. */
export function builtInSpecs(
  { builtIn }: ToolSelection,
  { shellTimes, toolsAllow, schedules = false, more = [] }: Limited,
): readonly ToolSpec[] {
  return [...toolKinds.map((kind) => ({ ...kind, ...kind.limited?.(shellTimes) })), ...more]
    .filter(
      ({ name }) =>
        (builtIn === 'all' || builtIn.includes(name)) && (toolsAllow?.includes(name) ?? true) && (schedules || name !== 'schedule'),
    )
    .map(specOf)
}

/** Returns the tools that need something of the person: web_search a key or an address, browser a setting and Chromium. */
export async function optionalTools({ config: { tools }, context: { env } }: OptionalSetup): Promise<readonly OptionalTool[]> {
  const isFound = env.BRAVE_API_KEY ?? env.TAVILY_API_KEY ?? env.EXA_API_KEY ?? env.SEARXNG_URL
  const searching = isFound ? (await import('../../tools/builtin/web_search.ts')).webSearchTools(tools.webSearch, env) : []
  const browsing = tools.browser ? (await import('./sandbox/browser-tool.ts')).browserTools(env) : []
  return [...searching, ...browsing]
}

export const builtInNames: readonly string[] = [...toolKinds.map(({ name }) => name), 'discover', 'skill', 'web_search', 'browser']

export function specOf({ name, description, parameters }: ToolSpec): ToolSpec {
  return { name, description, parameters }
}

/** Warns about names in channels.cli.tools_allow that match no tool, which are most likely typing errors. */
export function warnOfUnknown(log: Log, names: readonly string[], known: readonly string[]): void {
  for (const name of names.filter((name) => !known.includes(name))) {
    const hint = didYouMean(name, known) || `; there are: ${known.join(', ')}`
    log('warn', `channels.cli.tools_allow names "${name}", which is not a tool${hint}`)
  }
}

/** The tool by which a model calls one that it was not told of. */
export const namedCall = 'use_tool'
