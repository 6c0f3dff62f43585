/** Opens the skills library of a workspace, agent/library.yaml, in the forms that each kind of runner needs. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Setup } from '../../host/api.ts'
import { standingExecutables } from '../../host/toolset/executable-tools.ts'
import { builtInTools, type SourcedTool, type ToolSelection, type ToolSource } from '../../host/toolset/tool-selection.ts'
import { sha256 } from '../../kit/sha256.ts'
import { isCompiled, ownProgram } from '../../service/own-program.ts'
import type { RunnerSupport } from '../runners/runner.ts'
import { type AgentSkills, openLibrary } from '../skills/open-library.ts'
import { skillsSearchTool } from '../skills/skills-search-tool.ts'
import { noSkills, type Skills } from './worker-options.ts'

export type WorkerSkills = {
  readonly skills: Skills
  readonly support: RunnerSupport
  /** What children must be able to read for it. */
  readonly readable: readonly string[]
  /** For the own runner; absent: the tools of the configuration. */
  readonly tools?: ToolSelection
  close(): void
}

export type OpenedSkills = { readonly ok: true; readonly found: WorkerSkills } | { readonly ok: false; readonly message: string }

type Opening = {
  readonly setup: Setup
  readonly workspace: string
  /** The folder of the worker, which children may read in parts. */
  readonly state: string
  readonly owner: { readonly id: string; readonly role: string }
}

export const libraryFile = 'agent/library.yaml'

/** A workspace without a library is not a problem; a library with mistakes is one. @throws the system's error when the state cannot be written */
export function openWorkerSkills({ setup, workspace, state, owner }: Opening): OpenedSkills {
  const opened = openLibrary(join(workspace, libraryFile))
  if (!opened.ok) return opened.isMissing ? { ok: true, found: none } : { ok: false, message: opened.message }
  const agent = opened.forAgent(owner)
  const search = agent.openSearch()
  const snapshot = join(state, 'library.json')
  mkdirSync(state, { recursive: true, mode: 0o700 })
  writeFileSync(snapshot, agent.snapshot(), { mode: 0o600 })
  const extension = agent.piExtension()
  const args = ['control', 'skills-server', '--library', snapshot, '--agent', owner.id, '--role', owner.role]
  const found: WorkerSkills = {
    skills: skillsOf(agent),
    support: { ...(extension === undefined ? {} : { piExtension: extension }), mcpServer: { command: ownProgram(), args } },
    readable: [snapshot, ...ownFiles()],
    tools: { ...builtInTools, more: toolSource(setup, search) },
    close: search.close,
  }
  return { ok: true, found }
}

const none: WorkerSkills = { skills: noSkills, support: {}, readable: [], close() {} }

function skillsOf(agent: AgentSkills): Skills {
  return {
    isThere: true,
    index: agent.index,
    match(task) {
      const skill = agent.match(task)
      if (!skill) return undefined
      const { name, summary, content, command } = skill
      return { name, summary, ...(content === '' ? {} : { content }), ...(command ? { command } : {}) }
    },
  }
}

/** Our program runs inside the confinement of claude and codex, as their MCP server. */
function ownFiles(): readonly string[] {
  const program = ownProgram()
  if (isCompiled()) return [program]
  const root = dirname(dirname(program))
  const at = root.indexOf('/node_modules/')
  return at < 0 ? [root] : [root.slice(0, at + '/node_modules'.length)]
}

/** The same array each time, so that the model's list of tools stays as it is. */
function toolSource(setup: Setup, search: Parameters<typeof skillsSearchTool>[0]): ToolSource {
  const tool = skillsSearchTool(search)
  const sourced: SourcedTool = { ...tool, source: libraryFile, sha256: sha256(tool.description), changed: () => undefined }
  if (setup.config.tools.executables.length === 0) {
    const tools = [sourced]
    return async () => tools
  }
  const standing = standingExecutables(setup)
  return async (deps) => [...(await standing(deps)), sourced]
}
