/** Reads manifest.toml, in which a plugin says what it offers and what it needs, and names every problem by its line. */

import { readTables, type TableReader } from '../../../../config/text/table-reader.ts'
import { attempt } from '../../../../kit/errors.ts'
import { canonical, isJsonObject, type JsonObject, parseJson } from '../../../../kit/json.ts'
import { forms } from '../../../../kit/settings.ts'
import { didYouMean, quote } from '../../../../kit/text.ts'
import type { ToolSpec } from '../../../../runtime/port.ts'
import { parseDescription } from '../../../../tools/executable/description.ts'

export const manifestName = 'manifest.toml'

const capabilities = ['tool', 'channel', 'provider', 'hook'] as const

const fileAccess = ['none', 'read', 'write'] as const

/** `command` is a file of the plugin; absent: the process of the plugin answers the calls. */
type PluginTool = { readonly spec: ToolSpec; readonly command?: string }

/** `match` is what the hook is limited to, in the words of the hooks. */
type PluginHook = { readonly event: string; readonly command: string; readonly match?: string }

/** A call, and the output that it must have. */
type PluginTest = { readonly tool: string; readonly input: JsonObject; readonly output: string }

/** The access of somebody else's program: to the workspace, to hosts, and to variables of our environment. */
export type GuestPermissions = {
  readonly files: (typeof fileAccess)[number]
  readonly hosts: readonly string[]
  readonly variables: readonly string[]
}

export type PluginManifest = {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly capabilities: readonly (typeof capabilities)[number][]
  readonly tools: readonly PluginTool[]
  readonly hooks: readonly PluginHook[]
  readonly tests: readonly PluginTest[]
  /** A program that stays and answers lines of JSON-RPC. */
  readonly process?: string
  readonly permissions: GuestPermissions
}

type ReadManifest = { readonly ok: true; readonly manifest: PluginManifest } | { readonly ok: false; readonly problems: readonly string[] }

export const isPluginName = (name: string) => new RegExp(forms.plugin.pattern).test(name)

/** Never throws. Each problem begins with the line. */
export function readManifest(text: string): ReadManifest {
  const { value, problems } = readTables(text, manifestIn)
  return problems.length === 0 ? { ok: true, manifest: value } : { ok: false, problems }
}

function manifestIn(root: TableReader): PluginManifest {
  const name = root.text('name')
  if (name !== '' && !isPluginName(name)) root.wrong('name', 'is made of small letters, digits and "-", 64 at most')
  const version = root.text('version')
  if (version !== '' && !/^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$/.test(version)) root.wrong('version', 'is a version such as "0.1.0"')
  const process = pathIn(root, 'process', '')
  const tools = root.list('tools').map((table) => toolOf(table, process))
  const permissions = root.table('permissions')
  const manifest: PluginManifest = {
    name,
    version,
    description: root.text('description', ''),
    capabilities: wordsIn(root, 'capabilities', capabilities),
    tools,
    hooks: root.list('hooks').map(hookOf),
    tests: root.list('tests').map((table) => testOf(table, tools)),
    ...(process === '' ? {} : { process }),
    // A plugin names each host: the lists are for what a person configures.
    permissions: permissionsOf(permissions, new RegExp(`(?!@)${forms.domain.pattern}`)),
  }
  permissions.end()
  for (const [at, why] of contradictions(manifest)) root.wrong(at, why)
  return manifest
}

function testOf(table: TableReader, tools: readonly PluginTool[]): PluginTest {
  const [tool, input, output] = [table.text('tool'), table.raw('arguments'), table.text('output')]
  const names = tools.map(({ spec }) => spec.name)
  if (!names.includes(tool)) table.wrong('tool', `is not a tool of this plugin${didYouMean(tool, names)}`)
  if (!isJsonObject(input)) table.wrong('arguments', 'is a table')
  table.end()
  return { tool, input: isJsonObject(input) ? input : {}, output }
}

function contradictions({ capabilities, tools, hooks, process, permissions }: PluginManifest): readonly (readonly [string, string])[] {
  const names = tools.map(({ spec }) => spec.name)
  const twice = names.filter((name, at) => names.indexOf(name) < at)
  const uses = { tool: tools.length > 0, hook: hooks.length > 0 } as const
  const wrong = (['tool', 'hook'] as const).filter((one) => uses[one] !== capabilities.includes(one))
  return [
    ...wrong.map((one) => ['capabilities', `and [[${one}s]] do not fit: name "${one}" and write [[${one}s]], or neither`] as const),
    ...(process === undefined && capabilities.some((one) => one === 'channel' || one === 'provider')
      ? [['process', 'is missing: it is the program that brings messages or answers as a model'] as const]
      : []),
    ...twice.map((name) => ['tools', `has two tools "${name}"; rename one`] as const),
    ...(hooks.length > 0 && permissions.files === 'none'
      ? [['permissions.files', 'is "read" for a plugin with hooks, because a hook runs in the workspace'] as const]
      : []),
    // Changes belong to the call that made them, and a process serves many calls.
    ...(process !== undefined && permissions.files === 'write'
      ? [['permissions.files', 'is "none" or "read" for a plugin with a process; a tool with a command of its own may write'] as const]
      : []),
  ]
}

function wordsIn<const T extends string>(table: TableReader, name: string, known: readonly T[]): readonly T[] {
  const given = table.texts(name)
  const unknown = given.find((word) => !known.some((one) => one === word))
  if (unknown !== undefined) table.wrong(name, `has ${JSON.stringify(unknown)}; there are ${known.join(', ')}${didYouMean(unknown, known)}`)
  return known.filter((word) => given.includes(word))
}

/** Reads the path of a file of the plugin. */
function pathIn(table: TableReader, name: string, fallback?: string): string {
  const path = table.text(name, fallback).replace(/^\.\//, '')
  if (path !== '' && (path.startsWith('/') || path.split('/').some((part) => part === '..' || part === '')))
    table.wrong(name, `is the path of a file of the plugin, such as "./run"; got ${JSON.stringify(path)}`)
  return path
}

function toolOf(table: TableReader, process: string): PluginTool {
  const [name, description, command] = [table.text('name'), table.text('description'), pathIn(table, 'command', '')]
  const schema = table.raw('schema')
  const json = attempt(() => canonical(schema ?? null))
  if (json === undefined) table.wrong('schema', 'holds what JSON has not, such as a date')
  const parsed = parseDescription(JSON.stringify({ name, description, parameters: parseJson(json ?? '{"type":"object"}') }))
  if (!parsed.ok) table.wrong('', parsed.why.replace('"parameters"', '"schema"'))
  if (command === '' && process === '') table.wrong('command', 'is missing; it is the file to run, or the plugin has a process')
  table.end()
  const spec = parsed.ok ? parsed.spec : { name, description, parameters: { type: 'object' as const } }
  return { spec, ...(command === '' ? {} : { command }) }
}

function hookOf(table: TableReader): PluginHook {
  const [event, command, match] = [table.text('event'), pathIn(table, 'command'), table.text('match', '')]
  table.end()
  return { event, command, ...(match === '' ? {} : { match }) }
}

/** Reads a list of texts of one form. `says` completes the message "are …". */
export function textsLike(table: TableReader, name: string, form: RegExp, says: string): readonly string[] {
  const given = table.texts(name, [])
  const odd = given.find((one) => !form.test(one))
  if (odd !== undefined) table.wrong(name, `are ${says}; got ${quote(odd)}`)
  return given
}

/** Reads what a program of somebody else may do. `hosts` is the form of a host; other fields are left to the caller. */
export function permissionsOf(table: TableReader, hosts = new RegExp(forms.domain.pattern)): GuestPermissions {
  return {
    files: table.oneOf('files', fileAccess, 'none'),
    hosts: textsLike(table, 'hosts', hosts, 'host names such as "api.example.org"'),
    variables: textsLike(table, 'variables', new RegExp(forms.variable.pattern), 'names of environment variables such as "API_KEY"'),
  }
}
