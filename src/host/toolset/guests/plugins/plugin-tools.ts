/** Offers the tools of approved plugins: each runs in the sandbox with what its manifest declares and nothing else. */

import { join } from 'node:path'
import { errorText } from '../../../../kit/errors.ts'
import { visible } from '../../../../kit/text.ts'
import type { Tool } from '../../../../runtime/port.ts'
import { weaknessOf } from '../../../../security/redaction/secret-forms.ts'
import { executableTool } from '../../../../tools/executable/executable-tool.ts'
import { sandboxed } from '../../../../tools/tool-kind.ts'
import type { Setup } from '../../../api.ts'
import { policyOf } from '../../../setup/effective-policy.ts'
import type { SourcedTool, ToolDeps, ToolSource } from '../../contract.ts'
import { builtInNames } from '../../tool-selection.ts'
import type { PluginManifest } from './manifest.ts'
import { createPluginProcess, type ProcessOptions } from './plugin-process.ts'
import { checkFolder, openPlugins, type Plugin, type Plugins, type SoundPlugin } from './plugins.ts'

/** Holds what the tools of one plugin need: `folder` is the private copy of its files, `source` is where it is installed. */
type PluginHost = {
  readonly setup: Setup
  readonly deps: ToolDeps
  readonly manifest: PluginManifest
  readonly folder: string
  readonly digest: string
  readonly source: string
  /** @returns why it may not run any more */
  readonly changed: () => string | undefined
}

/** Returns a function that writes each line into the log once. */
export function warnOnce({ log }: Pick<Setup, 'log'>): (line: string) => void {
  const reported = new Set<string>()
  return (line) => {
    if (!reported.has(line)) log('warn', line)
    reported.add(line)
  }
}

/** Returns a source that looks at the plugins before each turn; it reports each finding once. */
export function pluginTools(setup: Setup): ToolSource {
  const plugins = openPlugins(setup.paths.home)
  const state: { key?: string; tools: readonly SourcedTool[] } = { tools: [] }
  const tell = warnOnce(setup)

  return async (deps) => {
    try {
      const found = plugins.list('enabled')
      for (const plugin of found)
        if (plugin.state !== 'approved') tell(`plugin ${visible(plugin.name)} is not offered: ${whyNotOffered(plugin)}`)
      const sound = found.filter((plugin): plugin is SoundPlugin => plugin.state === 'approved')
      const key = sound.map(({ name, files }) => `${name} ${files.digest}`).join('\n')
      if (state.key === key) return state.tools
      const tools = sound.flatMap(({ name, folder, files }) => {
        const { digest } = files
        const copy = plugins.copyOf(folder, files)
        // The manifest of the copy, whose bytes are those that were approved.
        const { manifest } = checkFolder(copy, folder)
        return toolsOf({ setup, deps, manifest, folder: copy, digest, source: folder, changed: () => whyChanged(plugins, name, digest) })
      })
      Object.assign(state, { key, tools: distinct(tools, tell) })
      return state.tools
    } catch (error) {
      tell(errorText(error))
      return []
    }
  }
}

/** Returns why a plugin that is approved and enabled, or was, is not offered; undefined when it is. */
export function whyNotOffered(plugin: Plugin): string | undefined {
  if (plugin.state === 'changed')
    return `its files changed after they were approved; look at them and run: braidclaw plugin approve ${plugin.name}`
  return plugin.state === 'broken' ? plugin.problems.map(visible).join('; ') : undefined
}

function whyChanged(plugins: Plugins, name: string, digest: string): string | undefined {
  const now = plugins.list('enabled').find((plugin) => plugin.name === name)
  if (now === undefined) return `plugin ${name} was disabled or removed`
  const why = whyNotOffered(now)
  if (why !== undefined) return `plugin ${name}: ${why}`
  return now.state !== 'broken' && now.files.digest === digest ? undefined : `plugin ${name} was replaced by another version`
}

/** @returns the tools of one plugin */
export function toolsOf(host: PluginHost): readonly SourcedTool[] {
  const { setup, deps, manifest, folder, digest, source, changed } = host
  const { files, hosts } = manifest.permissions
  const { around, kind, process } = processOf(host)
  const { maxOutputBytes } = deps
  return manifest.tools.map(({ spec, command }): SourcedTool => {
    const file = command ?? manifest.process ?? ''
    const path = join(folder, file)
    const tool = executableTool({
      spec,
      program: { path, real: path, copy: path, folder },
      sha256: digest,
      around,
      risk: setup.config.security.allowTools.includes(spec.name) ? 'low' : 'medium',
      readOnly: files !== 'write' || setup.config.security.autonomy === 'readonly',
      maxOutputBytes,
      input: 'stdin',
      printsJson: true,
      changed,
    })
    const call: Tool['invoke'] = async (input, { signal }) => {
      const result = await process.call(spec.name, input, signal)
      const sandbox = await kind()
      return sandbox === undefined ? result : sandboxed(result, { ok: true, code: 0, leftBehind: false, sandbox })
    }
    return { ...tool, ...(command === undefined ? { invoke: call } : {}), source: join(source, file), hosts }
  })
}

/** Returns the process of a plugin, which the first request starts, and what a command of the plugin runs in. */
export function processOf(host: Pick<PluginHost, 'setup' | 'deps' | 'manifest' | 'folder'>, onMessage?: ProcessOptions['onMessage']) {
  const { deps, manifest, folder } = host
  const { around, kind } = surroundings(host)
  const plan = {
    argv: [join(folder, manifest.process ?? '')],
    cwd: around.workspace,
    env: { ...around.env, BRAIDCLAW_TOOL_DIR: folder },
    readablePaths: [{ path: folder }],
  }
  const { maxOutputBytes, closed } = deps
  const process = createPluginProcess({ manifest, spawn: around.spawn, plan, maxOutputBytes, closed, ...(onMessage ? { onMessage } : {}) })
  return { around, kind, process }
}

/**
 * Without access to the workspace, the folder of the plugin itself is the workspace of its sandbox, so that the sandbox shows nothing else.
 */
function surroundings({ setup, deps, manifest, folder }: Pick<PluginHost, 'setup' | 'deps' | 'manifest' | 'folder'>) {
  const { files, hosts } = manifest.permissions
  const { workspace } = policyOf(setup.config, setup.paths, setup.context.env)
  const place = files === 'none' ? folder : workspace
  const own = deps.sandboxOn(place)
  deps.closed.addEventListener('abort', () => own.close(), { once: true })
  // Only the conversation judges what is written, and keeps its own sandbox free of processes that stay.
  const spawn = files === 'write' ? deps.spawn : own.spawn
  const spawnDeclared: typeof spawn = (plan) => spawn({ ...plan, network: hosts })
  return { around: { spawn: spawnDeclared, env: variablesFor(setup, manifest, deps.env), workspace: place }, kind: own.kind }
}

/** The declared variables may hold keys, so their values are redacted in everything that is shown or stored. */
function variablesFor({ context, redactor }: Setup, { permissions }: PluginManifest, env: ToolDeps['env']): ToolDeps['env'] {
  const given = permissions.variables.flatMap((name) => {
    const value = context.env[name]
    if (value === undefined) return []
    if (!weaknessOf(value)) redactor.register(value, name)
    return [[name, value] as const]
  })
  return { ...env, ...Object.fromEntries(given) }
}

/** Offers neither of two tools with one name: the choice between them must not depend on an order. */
export function distinct(tools: readonly SourcedTool[], tell: (line: string) => void): readonly SourcedTool[] {
  return tools.filter(({ name, source }) => {
    const other = builtInNames.includes(name)
      ? 'a built-in tool'
      : tools.find((tool) => tool.name === name && tool.source !== source)?.source
    if (other !== undefined) tell(`tool ${source} is not offered: it has the name "${name}", and so has ${other}; disable one of them`)
    return other === undefined
  })
}
