/** Implements `plugin list | new | test` and defines the other commands of plugins: what programs of others may do here. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { resolveExecutable } from '../../../host/setup/effective-policy.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { isPluginName } from '../../../host/toolset/guests/plugins/manifest.ts'
import { pluginLanguages, pluginTemplate } from '../../../host/toolset/guests/plugins/plugin-template.ts'
import { whyNotOffered } from '../../../host/toolset/guests/plugins/plugin-tools.ts'
import { openPlugins, type Plugin, type SoundPlugin } from '../../../host/toolset/guests/plugins/plugins.ts'
import { testPlugin } from '../../../host/toolset/guests/plugins/test-plugin.ts'
import { count, visible } from '../../../kit/text.ts'
import { isToolName } from '../../../tools/executable/description.ts'
import { command } from '../../args/command.ts'
import { pasteable } from '../../args/resolve-command.ts'
import { jsonFlag, sandboxFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { printList } from '../../print-list.ts'
import { folderCommands, line } from './folder-commands.ts'
import { missingFor, typeScriptRuntime } from './tool-new.ts'

export const list = command({
  flags: jsonFlag,
  examples: [['', 'what is there, and which of it may run']],
  run(context, { json = false }) {
    const plugins = openPlugins(context.home)
    const found = plugins.list()
    const none = `no plugins in ${plugins.root}; install one: braidclaw plugin install FOLDER`
    printList(context, { items: found.map(factsOf), json, lines: found.map(lineOf), none })
  },
})

function lineOf(plugin: Plugin): string {
  const { name, state } = plugin
  const why = state === 'broken' ? plugin.problems.map(visible).join('; ') : line(plugin.manifest.description)
  const version = state === 'broken' ? '' : plugin.manifest.version
  return `${visible(name).padEnd(20)} ${version.padEnd(10)} ${state.padEnd(13)} ${why}`.trimEnd()
}

function factsOf(plugin: Plugin) {
  const { name, state, folder, entry } = plugin
  const facts = { name, state, folder, source: entry?.source }
  if (plugin.state === 'broken') return { ...facts, problems: plugin.problems }
  const { manifest, files } = plugin
  return { ...facts, ...manifest, digest: files.digest, files: files.files }
}

const filesSaid = {
  none: 'it sees no file of the workspace',
  read: 'it reads the workspace',
  write: 'it reads the workspace, and writes a private view of it, whose changes are judged',
} as const

type Permissions = Pick<SoundPlugin['manifest']['permissions'], 'files' | 'hosts' | 'variables'>

export function permissionLines({ files, hosts, variables }: Permissions): readonly string[] {
  return [
    `  workspace  ${filesSaid[files]}`,
    `  hosts      ${hosts.join(', ') || 'none'}`,
    `  variables  ${variables.join(', ') || 'none'}`,
  ]
}

/** Says what the plugin may do. */
function describe(plugin: SoundPlugin): readonly string[] {
  const { manifest, files, entry, folder, state } = plugin
  const { permissions, tools, hooks, process, capabilities } = manifest
  return [
    `${plugin.name} ${manifest.version}: ${state}`,
    ...(manifest.description === '' ? [] : [`  ${line(manifest.description)}`]),
    `  from       ${line(entry?.source ?? folder)}`,
    ...tools.flatMap(({ spec, command }) => [
      `  tool       ${spec.name}: ${line(spec.description)}`,
      `             ${command === undefined ? 'its process answers' : `runs ${line(command)}`}, with ${line(JSON.stringify(spec.parameters))}`,
    ]),
    ...hooks.map(({ event, command, match }) => `  hook       ${line(event)}${match ? ` (${line(match)})` : ''}: runs ${line(command)}`),
    ...(process === undefined ? [] : [`  process    ${line(process)} runs as long as what uses it`]),
    ...(capabilities.includes('channel') ? ['  channel    it says who wrote what to the agent, and gets the answers'] : []),
    ...(capabilities.includes('provider') ? ['  provider   it sees every prompt that is sent to it, with what files and tools said'] : []),
    ...permissionLines(permissions),
    `  files      ${count(Object.keys(files.files).length, 'file')}, sha256 ${files.digest.slice(0, 12)}`,
  ]
}

export const { show, approve, install, update, remove, enable, disable } = folderCommands({
  noun: 'plugin',
  names: 'plugins',
  sample: 'echo-plugin',
  sources: 'A folder with a manifest.toml, git+URL#REF or npm:NAME@VERSION',
  open: ({ home }) => openPlugins(home),
  describe,
  facts: factsOf,
  notice: whyNotOffered,
})

export const create = command({
  flags: { lang: { type: 'choice', values: pluginLanguages, about: 'Language of the plugin (default: sh)' } },
  args: { name: { type: 'text', about: 'Name of the plugin, of its folder and of its tool' } },
  examples: [['shout --lang python', 'a folder here, with a manifest, a program and a test']],
  run(context, { lang = 'sh' }, { name }) {
    if (!isPluginName(name) || !isToolName(name)) throw usageError(`${JSON.stringify(name)} is not a name: small letters, digits and "-"`)
    const folder = resolve(context.cwd, name)
    if (existsSync(folder)) throw commandError(`${folder} is there already; nothing was written`)
    const short = lang === 'typescript' ? 'ts' : lang
    const runtime = short === 'ts' ? typeScriptRuntime() : undefined
    mkdirSync(folder)
    for (const [path, text, mode] of pluginTemplate(lang, name, runtime)) writeFileSync(join(folder, path), text, { mode })
    context.process.stdout.write(`${folder}\n`)
    const missing = resolveExecutable('node') && short === 'ts' ? undefined : missingFor(short, runtime)
    if (missing) context.process.stderr.write(`note: it does not run yet: ${missing}\n`)
    context.process.stderr.write(
      `try it: braidclaw plugin test ${pasteable([folder])}; install it: braidclaw plugin install ${pasteable([folder])}\n`,
    )
  },
})

export const test = command({
  flags: sandboxFlag,
  args: { path: { type: 'text', about: 'The folder of a plugin' } },
  examples: [['./shout', 'runs its tools in the sandbox; exit 1 when a test fails']],
  async run(context, { sandbox = 'auto' }, { path }) {
    const setupIn = (workspace: string) => loadSetup(context, { workspace })
    const tested = await testPlugin(context.home, { folder: resolve(context.cwd, path), sandbox, setupIn })
    for (const { tool, why } of tested)
      context.process.stdout.write(`${why === undefined ? 'ok    ' : 'failed'} ${tool}${why === undefined ? '' : `: ${why}`}\n`)
    if (tested.some(({ why }) => why !== undefined)) throw new CliExit(exitCodes.error)
  },
})
