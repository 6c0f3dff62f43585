/** Runs the process of a plugin that is a channel or a provider: only while its files are those that were approved, and always confined. */

import { errorText } from '../../../../kit/errors.ts'
import type { SandboxKind } from '../../../../sandbox/contract.ts'
import { cleanEnvironment } from '../../../../tools/process.ts'
import type { Setup } from '../../../api.ts'
import { policyOf } from '../../../setup/effective-policy.ts'
import type { ToolDeps } from '../../contract.ts'
import { createConfinement } from '../../sandbox/command-sandbox.ts'
import type { PluginProcess, ProcessOptions, Reply } from './plugin-process.ts'
import { processOf, whyNotOffered } from './plugin-tools.ts'
import { checkFolder, openPlugins, type Plugin } from './plugins.ts'

type ServiceOptions = Pick<ProcessOptions, 'closed' | 'onMessage'> & {
  readonly setup: Setup
  readonly name: string
  readonly capability: 'channel' | 'provider'
}

/** `refused`: the plugin may not run, which no repetition changes. */
type Refused = { readonly refused: string }

export type PluginService = {
  ask(...asked: Parameters<PluginProcess['ask']>): Promise<Reply | Refused>
  /** Starts the process where none runs. @returns why none runs */
  keep(): Promise<string | undefined>
}

/** Nothing starts before the first request. */
export function openPluginService({ setup, name, capability, closed, onMessage }: ServiceOptions): PluginService {
  const plugins = openPlugins(setup.paths.home)
  const state: { running?: { readonly digest: string; readonly process: PluginProcess; readonly end: AbortController } } = {}

  /** Ends a process of other files than those that are approved now. @returns why the plugin may not run. @throws Error when it cannot be read */
  async function current(): Promise<PluginProcess | Refused> {
    const plugin = plugins.find(name)
    const digest = plugin.state === 'approved' ? plugin.files.digest : undefined
    if (state.running?.digest !== digest) {
      state.running?.end.abort()
      delete state.running
    }
    const why = whyNot(plugin, capability)
    if (why !== undefined || plugin.state !== 'approved') return { refused: `plugin ${name} does not run: ${why}` }
    if (state.running) return state.running.process
    const folder = plugins.copyOf(plugin.folder, plugin.files)
    const end = new AbortController()
    const { deps } = ownDeps(setup, AbortSignal.any([closed, end.signal]), 'auto')
    const { process } = processOf({ setup, deps, manifest: checkFolder(folder, plugin.folder).manifest, folder }, onMessage)
    state.running = { digest: plugin.files.digest, process, end }
    return process
  }

  const process = () => current().catch((error: unknown) => ({ refused: errorText(error) }))

  return {
    async ask(...asked) {
      const found = await process()
      return 'refused' in found ? found : found.ask(...asked)
    },
    async keep() {
      const found = await process()
      return 'refused' in found ? found.refused : found.keep()
    },
  }
}

function whyNot(plugin: Plugin, capability: ServiceOptions['capability']): string | undefined {
  const { name } = plugin
  if (plugin.state === 'disabled') return `it is disabled; run: braidclaw plugin enable ${name}`
  if (plugin.state === 'not approved') return `it is not approved; look at it and run: braidclaw plugin approve ${name}`
  if (plugin.state !== 'approved') return whyNotOffered(plugin)
  return plugin.manifest.capabilities.includes(capability) ? undefined : `its manifest does not name the capability "${capability}"`
}

/** Returns what a plugin needs that runs outside of a conversation; `close` ends its sandbox. */
export function ownDeps(setup: Setup, closed: AbortSignal, sandbox: SandboxKind): { readonly deps: ToolDeps; close(): void } {
  const policy = policyOf(setup.config, setup.paths, setup.context.env)
  const sandboxOn = (workspace: string) => createConfinement(sandbox, { setup, policy: { ...policy, workspace } })
  const { spawn, close } = sandboxOn(policy.workspace)
  const env = cleanEnvironment({ home: policy.workspace })
  return { deps: { spawn, sandboxOn, env, maxOutputBytes: setup.config.limits.maxResultBytes, closed }, close }
}
