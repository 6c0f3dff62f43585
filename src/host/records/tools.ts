/** Lists all tools of a home, and says of each whether a model is offered it, and why not. */

import { withParts } from '../../config/config.ts'
import type { Tool } from '../../runtime/port.ts'
import type { SandboxKind } from '../../sandbox/contract.ts'
import type { Setup } from '../api.ts'
import type { ToolFacts } from '../contract/records-api.ts'
import { policyOf } from '../setup/effective-policy.ts'
import type { ToolRuntime, ToolSelection } from '../toolset/contract.ts'
import { trySandboxNow } from '../toolset/sandbox/command-sandbox.ts'
import { createToolRuntime } from '../toolset/tool-executor.ts'
import { builtInNames } from '../toolset/tool-selection.ts'
import { everything, parseToolsOption } from '../toolset/tools-option.ts'

/** `tools`: as the option of that name; absent: the built-in ones and everything in tools.dir. */
export type ToolsAsked = { readonly tools?: string | undefined; readonly sandbox?: SandboxKind | undefined }

export async function toolFacts(setup: Setup, { tools, sandbox }: ToolsAsked = {}): Promise<readonly ToolFacts[]> {
  const { config, paths } = setup
  const request = tools === undefined ? everything(setup) : parseToolsOption(setup, tools)
  const toolRuntime = await openTools(setup, request, sandbox)
  await toolRuntime.close()
  const isGuest = (source: string) => source.startsWith(`${paths.home}/plugins/`) || source.startsWith('mcp')
  const isOffered = (name: string) => tools !== undefined || builtInNames.includes(name) || config.tools.executables.includes(name)
  const trial = await trySandboxNow(setup, sandbox)
  const off = (tool: Tool, source: string) => {
    const isListed = toolRuntime.tools.includes(tool) && (isOffered(tool.name) || isGuest(source))
    if (!isListed) return source === 'built in' ? 'not in channels.cli.tools_allow' : 'not in tools.executables'
    return withParts(['shell']).includes(tool.name) && !trial.ok ? `no sandbox: ${trial.why}; braidclaw doctor says what to do` : undefined
  }
  return toolRuntime.all.map((tool) => {
    const source = 'source' in tool && typeof tool.source === 'string' ? tool.source : 'built in'
    const why = off(tool, source)
    const { name, description, risk, parameters } = tool
    return { name, description, risk, active: why === undefined, why, source, parameters }
  })
}

/** Opens the tools of a home without a conversation; close them after use. */
export function openTools(setup: Setup, tools: ToolSelection, sandbox?: SandboxKind): Promise<ToolRuntime> {
  const policy = policyOf(setup.config, setup.paths, setup.context.env)
  return createToolRuntime({ setup, policy, conversationId: 'list', sandbox, tools })
}
