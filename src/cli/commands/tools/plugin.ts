/** Implements `plugin list | show | approve | remove | enable | disable | install`: what programs of others may do here. */

import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { terminalPrompt } from '../../../channels/terminal/audience.ts'
import type { CliContext } from '../../../channels/terminal/context.ts'
import { differenceLines } from '../../../channels/terminal/past-changes.ts'
import { coloured, wantsColor } from '../../../channels/terminal/printer.ts'
import { isTerminal } from '../../../channels/terminal/tty.ts'
import { questionFold } from '../../../host/changes/change-lines.ts'
import { resolveExecutable } from '../../../host/setup/effective-policy.ts'
import { loadSetup } from '../../../host/setup/setup.ts'
import { fetchPlugin, isRemote } from '../../../host/toolset/guests/plugins/fetch-plugin.ts'
import { isPluginName } from '../../../host/toolset/guests/plugins/manifest.ts'
import { pluginLanguages, pluginTemplate } from '../../../host/toolset/guests/plugins/plugin-template.ts'
import { whyNotOffered } from '../../../host/toolset/guests/plugins/plugin-tools.ts'
import { differenceOf, openPlugins, type Plugin, type Plugins, type SoundPlugin } from '../../../host/toolset/guests/plugins/plugins.ts'
import { testPlugin } from '../../../host/toolset/guests/plugins/test-plugin.ts'
import { count, cut, flat, visible } from '../../../kit/text.ts'
import type { ChangeSet } from '../../../runtime/changes.ts'
import { isToolName } from '../../../tools/executable/description.ts'
import { type Arguments, command, type Flags } from '../../args/command.ts'
import { pasteable } from '../../args/resolve-command.ts'
import { jsonFlag, sandboxFlag } from '../../args/turn-flags.ts'
import { CliExit, commandError, exitCodes, usageError } from '../../exit.ts'
import { printList } from '../../print-list.ts'
import { missingFor, typeScriptRuntime } from './tool-new.ts'

const known = { name: { type: 'text', about: 'The name of the plugin', complete: 'plugins' } } as const satisfies Arguments
const yesFlag = { yes: { type: 'boolean', about: 'Approve it without a question' } } as const satisfies Flags

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

/** Puts a text of somebody else on one line. */
export function line(text: string): string {
  return cut(visible(flat(text).trim()), 200)
}

export const show = command({
  flags: jsonFlag,
  args: known,
  examples: [['echo-plugin', 'its tools, what it may do, and what changed since it was approved']],
  run(context, { json = false }, { name }) {
    const plugins = openPlugins(context.home)
    const plugin = plugins.find(name)
    if (json) return void context.process.stdout.write(`${JSON.stringify(factsOf(plugin))}\n`)
    const sound = plugins.sound(name)
    context.process.stdout.write(describe(sound))
    printDifference(context, differenceOf(plugins, sound))
    const why = whyNotOffered(plugin)
    if (why !== undefined) context.process.stdout.write(`${why}\n`)
  },
})

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
function describe(plugin: SoundPlugin): string {
  const { manifest, files, entry, folder, state } = plugin
  const { permissions, tools, hooks, process, capabilities } = manifest
  const unused = capabilities.filter((one) => one === 'channel' || one === 'provider')
  const lines = [
    `${plugin.name} ${manifest.version}: ${state}`,
    ...(manifest.description === '' ? [] : [`  ${line(manifest.description)}`]),
    `  from       ${line(entry?.source ?? folder)}`,
    ...tools.flatMap(({ spec, command }) => [
      `  tool       ${spec.name}: ${line(spec.description)}`,
      `             ${command === undefined ? 'its process answers' : `runs ${line(command)}`}, with ${line(JSON.stringify(spec.parameters))}`,
    ]),
    ...hooks.map(({ event, command, match }) => `  hook       ${line(event)}${match ? ` (${line(match)})` : ''}: runs ${line(command)}`),
    ...(process === undefined ? [] : [`  process    ${line(process)} runs as long as the conversation`]),
    ...permissionLines(permissions),
    `  files      ${count(Object.keys(files.files).length, 'file')}, sha256 ${files.digest.slice(0, 12)}`,
    ...(unused.length === 0 ? [] : [`  unused     ${unused.join(', ')}: this version does not use it`]),
  ]
  return lines.map((each) => `${each}\n`).join('')
}

export function printDifference({ process: { stdout, env } }: CliContext, set: ChangeSet | undefined): void {
  if (set === undefined || set.changes.length === 0) return
  stdout.write('changed since it was approved:\n')
  stdout.write(coloured(differenceLines(set, questionFold), isTerminal(1) && wantsColor(env)))
}

export const approve = command({
  flags: yesFlag,
  args: known,
  examples: [
    ['echo-plugin', 'shows what it may do and what changed, and asks'],
    ['echo-plugin --yes', 'approves the files that are there now'],
  ],
  exits: [4],
  async run(context, { yes = false }, { name }) {
    const plugins = openPlugins(context.home)
    if (!(await approved(context, plugins, plugins.sound(name), yes)))
      throw new CliExit(
        exitCodes.approval_needed,
        `error: nobody can be asked here; approve it with: braidclaw plugin approve ${name} --yes`,
      )
  },
})

/** Asks the person at the terminal. @returns undefined when nobody can be asked */
export async function confirmed(context: CliContext, question: string): Promise<boolean | undefined> {
  const ask = terminalPrompt(context)
  return ask && /^y(es)?$/i.test((await ask(question))?.trim() ?? '')
}

/** Shows what the plugin may do, and asks. @returns false when nobody can be asked. @throws CliExit after a no */
async function approved(context: CliContext, plugins: Plugins, plugin: SoundPlugin, yes: boolean): Promise<boolean> {
  const { stdout } = context.process
  stdout.write(describe(plugin))
  printDifference(context, differenceOf(plugins, plugin))
  const answer = yes || (await confirmed(context, `Approve exactly these files of ${plugin.name}? [y/N] `))
  if (answer === undefined) return false
  if (!answer) throw new CliExit(exitCodes.denied, `error: ${plugin.name} was not approved`)
  await plugins.approve(plugin.name, plugin.files.digest)
  stdout.write(`approved: ${plugin.name}\n`)
  return true
}

export const install = command({
  flags: yesFlag,
  args: { source: { type: 'text', about: 'A folder with a manifest.toml, git+URL#REF or npm:NAME@VERSION' } },
  examples: [
    ['./echo-plugin', 'copies the folder, shows what it may do, and asks; nothing of it runs'],
    ['./echo-plugin --yes', 'approves it, too'],
    ['git+https://example.org/echo-plugin.git#v1.0', 'one commit of a repository'],
    ['npm:echo-plugin@1.0.0', 'a package, without its scripts'],
  ],
  exits: [3],
  run(context, { yes = false }, { source }) {
    return copied(context, yes, isRemote(source) ? source : resolve(context.cwd, source))
  },
})

export const update = command({
  flags: yesFlag,
  args: known,
  examples: [['echo-plugin', 'fetches it again from where it came, shows what changed, and asks']],
  exits: [3],
  run(context, { yes = false }, { name }) {
    const { entry } = openPlugins(context.home).find(name)
    if (entry?.source === undefined) throw commandError(`${name} was not installed by a command; change its files, then approve it`)
    return copied(context, yes, entry.source, name)
  },
})

/** Copies a plugin into the home, in place of the one of the name `replace`, and asks whether it may run. */
async function copied(context: CliContext, yes: boolean, from: string, replace?: string): Promise<void> {
  const plugins = openPlugins(context.home)
  const place = mkdtempSync(join(tmpdir(), 'braidclaw-plugin-'))
  const fetched = join(place, 'plugin')
  let name: string
  try {
    if (isRemote(from)) await fetchPlugin(loadSetup(context), from, fetched)
    name = await plugins.install(isRemote(from) ? fetched : from, from, replace)
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
  const plugin = plugins.sound(name)
  context.process.stdout.write(`installed: ${plugin.folder}\n`)
  if (plugin.state === 'approved') context.process.stdout.write('it is approved already, with exactly these files\n')
  else if (!(await approved(context, plugins, plugin, yes)))
    context.process.stderr.write(`it does not run yet; approve it with: braidclaw plugin approve ${name}\n`)
}

/** Makes a command that changes what is kept of one plugin. */
function change(does: string, work: (plugins: Plugins, name: string) => Promise<unknown>, done: string) {
  return command({
    args: known,
    examples: [['echo-plugin', does]],
    async run(context, _flags, { name }) {
      await work(openPlugins(context.home), name)
      context.process.stdout.write(`${done}: ${visible(name)}\n`)
    },
  })
}

export const remove = change('deletes its folder and forgets the approval', (plugins, name) => plugins.remove(name), 'removed')
export const enable = change('its tools are offered again', (plugins, name) => plugins.enable(name, true), 'enabled')
export const disable = change('its tools are no longer offered', (plugins, name) => plugins.enable(name, false), 'disabled')

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
