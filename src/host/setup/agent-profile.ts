/** Finds the agent of a turn: which agent it is, where its files are, and what its soul says. */

import { statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { entriesIn } from '../../kit/proc.ts'
import { sha256 } from '../../kit/sha256.ts'
import { didYouMean } from '../../kit/text.ts'
import { agentFolder } from '../../memory/agent-files/agent-folder.ts'
import { type AgentPaths, agentPaths } from '../../memory/agent-files/agent-paths.ts'
import { composeSystem } from '../../memory/agent-files/compose-system.ts'
import { readPointer } from '../../memory/agent-files/session-file.ts'
import type { RunAgent } from '../../runtime/port.ts'
import type { ConversationRequest, Setup } from '../api.ts'
import { FailureError } from '../failure.ts'
import { realFolder } from './workspace-folder.ts'

export type AgentProfile = { readonly id: string; readonly paths: AgentPaths }

/** An agent with its soul, ready for a conversation. */
export type ActiveAgent = {
  readonly request: Pick<ConversationRequest, 'soul' | 'agent'>
  readonly session: () => ConversationRequest['conversation']
}

export async function activeAgentOf(setup: Setup): Promise<ActiveAgent> {
  const agentProfile = agentProfileOf(setup)
  const soul = await soulOf(setup, agentProfile)
  return { request: { agent: runAgent(agentProfile), ...(soul === '' ? {} : { soul }) }, session: () => sessionOf(agentProfile) }
}

/** Describes the agent as the journal of a run names it. */
export function runAgent({ id, paths }: AgentProfile): RunAgent {
  return { id, folder: paths.folder, pointer: basename(paths.conversation) }
}

/** Chooses the conversation of the agent's session, or a new one when there is none. */
export function sessionOf({ paths }: AgentProfile): ConversationRequest['conversation'] {
  const id = readPointer(paths.conversation)
  return { kind: 'session', id }
}

type AgentSetup = Pick<Setup, 'config' | 'paths'>

/**
 * Returns the configured agent, or "default", which exists without any file. @throws FailureError `usage` that lists the existing agents
 */
export function agentProfileOf({ config, paths }: AgentSetup): AgentProfile {
  const id = config.defaultAgent ?? 'default'
  const folder = agentFolder({ agents: paths.agents, id, chosen: config.memory.agentDir })
  const isThere = id === 'default' || Object.hasOwn(config.agents, id) || statSync(folder, { throwIfNoEntry: false })?.isDirectory()
  // A named agent keeps one session in all folders; the default agent keeps one session per folder.
  if (isThere) return { id, paths: agentPaths(folder, id === 'default' ? pointerOf(realFolder(config.workspaceDir)) : undefined) }
  const there = agentsOf({ config, paths })
  const advice = didYouMean(id, there) || `; there are: ${there.join(', ')}`
  throw new FailureError('usage', `no agent "${id}"${advice}. To make it, write ${join(folder, 'soul.md')}`)
}

const pointerOf = (folder: string) => `conversation-${sha256(folder).slice(0, 16)}`

/** Returns the names of all agents, sorted; "default" is always among them. */
export function agentsOf({ config, paths }: AgentSetup): readonly string[] {
  const folders = entriesIn(paths.agents).filter((entry) => entry.isDirectory() && /^[a-z0-9][a-z0-9-]*$/.test(entry.name))
  return [...new Set(['default', ...Object.keys(config.agents), ...folders.map(({ name }) => name)])].sort()
}

/** @throws FailureError `error` when it cannot be read; skipped files are logged */
export async function soulOf(
  { config, paths, log }: Pick<Setup, 'config' | 'paths' | 'log'>,
  agentProfile: AgentProfile,
  { alone = false } = {},
): Promise<string> {
  const named = Object.hasOwn(config.agents, agentProfile.id) ? config.agents[agentProfile.id]?.soul : undefined
  const composed = await composeSystem({
    folder: agentProfile.paths.folder,
    soulOnly: alone,
    soul: named ? { path: named, home: paths.home } : undefined,
  })
  if (!composed.ok) throw new FailureError('error', `${composed.message}`)
  for (const notice of composed.notices) log('warn', notice)
  return composed.text
}
