/**
 * Keeps the book of approved MCP servers, and on disk what each server last said that it offers. A tool is approved in exactly one
 * definition; a server, in exactly one way of starting it.
 */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { readConfigFile } from '../../../../config/text/read-toml-file.ts'
import { replaceFile } from '../../../../kit/files.ts'
import { canonical, changeTexts, isObject, parseJson } from '../../../../kit/json.ts'
import { sha256 } from '../../../../kit/sha256.ts'
import type { McpPromptDefinition, McpResourceDefinition, McpServerInfo, McpToolDefinition } from '../../../../mcp/contract.ts'
import type { ChangeSet, EntryState } from '../../../../runtime/changes.ts'
import { approvedServers } from '../../tool-selection.ts'
import { openApprovedBook } from '../approved-book.ts'
import type { McpPermissions, McpServer } from './configured-servers.ts'

/** `start` is the digest of the way in which the server may start, and `tools` has the digest of each approved definition by name. */
export type ServerApproval = {
  readonly enabled: boolean
  readonly start?: string
  /** Chosen when the start was approved; absent: those of the file. */
  readonly permissions?: McpPermissions
  readonly tools: Readonly<Record<string, string>>
  /** Approved tools that are not offered. */
  readonly off?: readonly string[]
}

/** Holds what a server said when it was asked last. */
export type Definitions = {
  readonly server: McpServerInfo
  readonly tools: readonly McpToolDefinition[]
  readonly resources: readonly McpResourceDefinition[]
  readonly prompts: readonly McpPromptDefinition[]
  /** Definitions that the client refused, and why. */
  readonly refused: readonly { readonly name: string; readonly why: string }[]
}

/** `gone`: approved, but the server no longer has it. */
export type ToolState = 'approved' | 'not approved' | 'changed' | 'disabled' | 'gone'

export type ServerState = Exclude<ToolState, 'gone'>

export function openDefinitions(home: string) {
  const book = openApprovedBook<ServerApproval>({ home, file: approvedServers(home), noun: 'MCP server', isEntry: isApproval })
  const fileOf = (key: string, which: 'seen' | 'approved') => join(home, 'mcp', 'definitions', `${sha256(key).slice(0, 32)}.${which}.json`)
  const read = (key: string, which: 'seen' | 'approved') => {
    const found = readConfigFile(fileOf(key, which), maxDefinitionBytes)
    return found.state === 'text' ? parseJson(found.text) : undefined
  }

  return {
    ...book,
    /** Returns what the server said last, from the disk; undefined when it was never asked. */
    seen(key: string): Definitions | undefined {
      const value = read(key, 'seen')
      return isDefinitions(value) ? value : undefined
    },
    keepSeen(key: string, seen: Definitions): void {
      if (JSON.stringify(this.seen(key)) !== JSON.stringify(seen)) replaceFile(fileOf(key, 'seen'), JSON.stringify(seen))
    },
    /** Keeps the texts of what is approved, so that a later change can be shown. */
    keepApproved: (key: string, texts: Readonly<Record<string, string>>) => replaceFile(fileOf(key, 'approved'), JSON.stringify(texts)),
    approvedTexts(key: string): Readonly<Record<string, string>> {
      const value = read(key, 'approved')
      return isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, text]) => [name, String(text)])) : {}
    },
    forget(key: string): void {
      for (const which of ['seen', 'approved'] as const) rmSync(fileOf(key, which), { force: true })
    },
  }
}

export type DefinitionStore = ReturnType<typeof openDefinitions>

const maxDefinitionBytes = 16 * 1024 * 1024

function isApproval(entry: unknown): entry is ServerApproval {
  if (!isObject(entry) || typeof entry.enabled !== 'boolean' || !isObject(entry.tools)) return false
  return [entry.start, ...Object.values(entry.tools)].every((digest) => digest === undefined || /^[0-9a-f]{64}$/.test(String(digest)))
}

function isDefinitions(value: unknown): value is Definitions {
  if (!isObject(value)) return false
  return isObject(value.server) && ['tools', 'resources', 'prompts', 'refused'].every((list) => Array.isArray(value[list]))
}

/** Covers everything that the server says of the tool, so that no word of it changes unseen. */
export function toolDigest(tool: McpToolDefinition): string {
  return sha256(canonical(changeTexts(tool, (text) => text.toWellFormed())))
}

/** Returns how the server starts, as text: values that stand in the file are keys as often as not, so only their digests are in it. */
export function startText({ transport, permissions }: McpServer): string {
  const hidden = (texts: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(texts).map(([name, value]) => [name, value.includes('${') ? value : `sha256 ${sha256(value)}`]))
  const shown =
    transport.kind === 'stdio' ? { ...transport, env: hidden(transport.env) } : { ...transport, headers: hidden(transport.headers) }
  return `${JSON.stringify(JSON.parse(canonical(changeTexts({ transport: shown, permissions }, (text) => text.toWellFormed()))), null, 2)}\n`
}

export function serverState(server: McpServer, approval: ServerApproval | undefined): ServerState {
  if (approval?.start === undefined) return 'not approved'
  if (approval.start !== sha256(startText(server))) return 'changed'
  return approval.enabled && server.enabled ? 'approved' : 'disabled'
}

export function toolState(approval: ServerApproval | undefined, name: string, digest: string | undefined): ToolState {
  const approved = approval !== undefined && Object.hasOwn(approval.tools, name) ? approval.tools[name] : undefined
  if (digest === undefined) return 'gone'
  if (approved === undefined) return 'not approved'
  if (approved !== digest) return 'changed'
  return approval?.off?.includes(name) ? 'disabled' : 'approved'
}

/** Returns the files that stand for a server in a difference: how it starts, and each of its tools. */
export function textsOf(server: McpServer, tools: readonly McpToolDefinition[]): Readonly<Record<string, string>> {
  const texts = tools.map((tool) => [`${server.id}/${tool.name}`, `${JSON.stringify(tool, null, 2)}\n`])
  return { [`${server.id} (start)`]: startText(server), ...Object.fromEntries(texts) }
}

/** Shows how texts differ from those that were approved, as a change set of files. */
export function differenceOfTexts(before: Readonly<Record<string, string>>, after: Readonly<Record<string, string>>): ChangeSet {
  const paths = Object.keys({ ...before, ...after }).filter((path) => before[path] !== after[path])
  const state = (text: string | undefined): EntryState | undefined =>
    text === undefined ? undefined : { kind: 'file', mode: 0o600, size: Buffer.byteLength(text), sha256: sha256(text.toWellFormed()) }
  return {
    stage: 'proposed',
    changes: paths.toSorted().map((path) => ({ path, before: state(before[path]), after: state(after[path]) })),
    content({ path }, side, maxBytes) {
      const text = { before, after }[side][path]
      return text === undefined || Buffer.byteLength(text) > maxBytes ? undefined : Buffer.from(text)
    },
  }
}
