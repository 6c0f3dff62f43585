/**
 * Selects the tools of a turn by `--tools` (a folder of executables, a JSON list of names, or `default`), and those of the operator's own
 * commands: without `--tools` they get more than a model.
 */

import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isObject, parseJson } from '../../kit/json.ts'
import { isSchema } from '../../tools/executable/description.ts'
import type { Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import type { ToolSelection, ToolSource } from './contract.ts'
import { executablesFrom, type ListedTool, withGuests } from './executable-tools.ts'
import { builtInNames, builtInTools } from './tool-selection.ts'

const MAX_LIST_BYTES = 1_048_576

/**
 * Parses `spec`: `default` (the ten built-in tools), a folder of executables, or a JSON file that lists tools by name: an array of {name,
 * description, parameters | input_schema}. The model may use only these tools. @throws FailureError `usage` that names the mistake.
 */
export function parseToolsOption(setup: Setup, spec: string): ToolSelection {
  if (spec === 'default') return { ...builtInTools, refusals: 'not permitted' }
  if (spec.trim() === '') throw wrong('""', 'name a file, a folder or "default"')
  const path = resolve(setup.context.cwd, spec)
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found) throw wrong(spec, 'the file or folder does not exist; name one that does, or "default" for the built-in tools')
  const by = `--tools ${spec}`
  if (found.isDirectory()) return { builtIn: [], more: executablesFrom(setup, { at: path, by }), refusals: 'not permitted' }
  if (found.size > MAX_LIST_BYTES) throw wrong(spec, `it has ${found.size} bytes; ${MAX_LIST_BYTES} are the limit`)
  const asked = listOf(spec, readFileSync(path, 'utf8'))
  const isBuiltIn = ({ name }: ListedTool) => builtInNames.includes(name)
  const own = asked.filter((each) => !isBuiltIn(each))
  return {
    builtIn: asked.filter(isBuiltIn).map(({ name }) => name),
    ...(own.length === 0 ? {} : { more: executablesFrom(setup, { at: folderFor(setup, path), asked: own, by }) }),
    refusals: 'not permitted',
  }
}

/**
 * Returns the environment's folder, else the folder beside the list, else the configured one. Only one folder counts, so that no name can
 * hide another.
 */
function folderFor({ config, origins }: Setup, list: string): string {
  if (origins['tools.dir']?.source === 'environment') return config.tools.dir
  const beside = ['skills', 'tools'].map((name) => join(dirname(list), name))
  return beside.find((path) => existsSync(path)) ?? config.tools.dir
}

function listOf(spec: string, text: string): readonly ListedTool[] {
  const list = parseJson(text)
  if (!Array.isArray(list)) throw wrong(spec, 'it is not a JSON array; write [{"name":"file_read"}, {"name":"weather"}]')
  const asked = list.map((entry: unknown, at) => askedOf(spec, entry, at))
  const twice = asked.find(({ name }, at) => asked.some((other, before) => before < at && other.name === name))
  if (twice) throw wrong(spec, `it names "${twice.name}" twice`)
  return asked
}

/** The tool supplies its own description; the description in the list is for people. */
function askedOf(spec: string, entry: unknown, at: number): ListedTool {
  if (!isObject(entry) || typeof entry.name !== 'string' || entry.name === '')
    throw wrong(spec, `entry ${at + 1} has no "name"; write {"name":"file_read"}`)
  const parameters = entry.parameters ?? entry.input_schema
  if (parameters === undefined) return { name: entry.name }
  if (isSchema(parameters)) return { name: entry.name, parameters }
  throw wrong(spec, `entry ${at + 1} ("${entry.name}") has parameters that are not a JSON Schema of an object`)
}

function wrong(spec: string, why: string): FailureError {
  return new FailureError('usage', `--tools ${spec}: ${why}`)
}

/** Returns the built-in tools, everything in tools.dir, the plugins and the MCP servers; what is absent costs nothing. */
export function everything(setup: Setup): ToolSelection {
  const { dir } = setup.config.tools
  return withMore(withGuests(setup, existsSync(dir) ? executablesFrom(setup, { at: dir }) : undefined))
}

function withMore(more: ToolSource | undefined): ToolSelection {
  return more === undefined ? builtInTools : { ...builtInTools, more }
}

/** Selects the tool that the operator named: of tools.dir it looks only for that executable. */
export function toolsFor(setup: Setup, name: string, spec: string | undefined): ToolSelection {
  if (spec !== undefined) return parseToolsOption(setup, spec)
  const { dir } = setup.config.tools
  if (builtInNames.includes(name)) return builtInTools
  return withMore(withGuests(setup, existsSync(dir) ? executablesFrom(setup, { at: dir, asked: [{ name }] }) : undefined))
}
