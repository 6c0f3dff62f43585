/** Reads the project's own instructions to the model from files of a trusted workspace: they are prompt text, never policy. */

import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { createTrust } from '../../config/trust.ts'
import { errorText } from '../../kit/errors.ts'
import { lazy } from '../../kit/lazy.ts'
import { visible } from '../../kit/text.ts'
import type { Instruction } from '../../runtime/event.ts'
import { quoteText } from '../../security/command/syntax/quote.ts'
import type { ProjectTool } from '../../tools/builtin/discover.ts'
import { instructionBytes, instructionFile } from '../../workspace/instruction-file.ts'
import type { Setup, SlashCommands } from '../api.ts'
import type { OfferedSkills } from '../toolset/guests/skills/offered-skills.ts'
import type { InstructionRead, InstructionReader } from './project-files.ts'
import { skillFolders } from './workspace-folder.ts'

export type InstructionOptions = {
  readonly setup: Setup
  /** Real path. */
  readonly workspace: string
  /** Receives one line when a file is not read because the workspace is not trusted. Absent: the line is not needed. */
  readonly offer?: (line: string) => void
}

export type Instructions = ReturnType<typeof createInstructions>

/** Without such a file this costs one stat per folder; the first file loads everything else. */
export function createInstructions({ setup, workspace, offer }: InstructionOptions) {
  const { log, paths } = setup
  const state: {
    room: number
    root?: Promise<Instruction | undefined>
    trusted?: boolean
    read?: InstructionReader
    tools?: Promise<readonly ProjectTool[]>
  } = { room: instructionBytes }
  const visited = new Set<string>()

  /** `touched`: the paths that a tool has just read or written; their text needs no repeating. */
  async function inFolder(folder: string, touched: readonly string[] = []): Promise<Instruction | undefined> {
    if (visited.has(folder)) return undefined
    const path = instructionFile(workspace, folder)
    if (path === undefined) return undefined
    visited.add(folder)
    state.trusted ??= isTrusted(path)
    if (!state.trusted || touched.includes(`${workspace}/${path}`)) return undefined
    const read = await attempt(path)
    if (!read.ok) {
      log('warn', 'instructions not read', { path, why: read.why })
      return undefined
    }
    if (read.instruction.text.trim() === '') return undefined
    state.room -= read.bytes
    if (read.cut !== undefined) log('warn', 'instructions cut', { path, why: read.cut })
    else log('info', 'instructions read', { path, bytes: read.bytes })
    return read.instruction
  }

  /** A missing workspace is not a reason to end a run. */
  async function attempt(path: string): Promise<InstructionRead> {
    try {
      state.read ??= (await projectFiles()).openReader(setup, workspace)
      return state.read(path, state.room)
    } catch (error) {
      return { ok: false, why: errorText(error) }
    }
  }

  function isTrusted(path: string): boolean {
    const trusted = createTrust(paths.trustedFolders).isTrusted(setup.config.copyOf ?? workspace)
    if (!trusted)
      offer?.(
        `${visible(path)} is not read: this folder is not trusted. Look at it, then: braidclaw trust ${visible(quoteText(setup.config.copyOf ?? workspace))}`,
      )
    return trusted
  }

  const root = () => (state.root ??= inFolder(''))

  return {
    /** Returns the instructions of the workspace folder: read once, so that the system prompt keeps its bytes. */
    root,
    /** Returns the tool discover where there are skills, or where the file links to documents: once, so that the list keeps its bytes. */
    tools: () => (state.tools ??= root().then((rules) => projectTools(hasSkills(setup, workspace), rules?.text))),
    ...createOffers(setup, workspace),
    /** Returns the instructions of the folders from the workspace down to these absolute paths, each folder only once. */
    async below(touched: readonly string[]): Promise<readonly Instruction[]> {
      const found: Instruction[] = []
      for (const folder of foldersTo(workspace, touched)) {
        const one = await inFolder(folder, touched)
        if (one) found.push(one)
      }
      return found
    },
  }
}

function createOffers(setup: Setup, workspace: string) {
  const skills = lazy(async (): Promise<OfferedSkills | undefined> => {
    if (hasSkills(setup, workspace)) return (await import('../toolset/guests/skills/offered-skills.ts')).offerSkills(setup, workspace)
  })
  const commands = lazy(async (): Promise<SlashCommands | undefined> => {
    const folders = [`${setup.paths.home}/commands`, `${workspace}/.claude/commands`].filter(existsSync)
    const offered = await skills.get()
    if (folders.length === 0 && offered === undefined) return undefined
    return (await import('../toolset/guests/skills/slash-commands.ts')).openSlashCommands(setup, { workspace, skills: offered })
  })
  return {
    /** Returns the skills that may be used; undefined where there is no folder of skills. */
    skills: skills.get,
    /** Returns the slash commands; undefined where there are neither files of commands nor skills. */
    commands: commands.get,
  }
}

const projectFiles = () => import('./project-files.ts')

async function projectTools(areSkillsThere: boolean, rules = ''): Promise<readonly ProjectTool[]> {
  if (!areSkillsThere && !/\]\((?!https?:)[^)\n]{1,300}\.(md|txt)/.test(rules)) return []
  return (await projectFiles()).projectTools(areSkillsThere)
}

/** Tells whether there is a folder of skills; one in the workspace counts when it is trusted. */
function hasSkills(setup: Setup, workspace: string): boolean {
  const isTrusted = () => createTrust(setup.paths.trustedFolders).isTrusted(setup.config.copyOf ?? workspace)
  const folders = skillFolders(setup, workspace).filter(existsSync)
  return folders.some((folder) => !folder.startsWith(`${workspace}/.`)) || (folders.length > 0 && isTrusted())
}

/** Returns the folders below the root, relative and from the top down; a path itself may be a folder. The root is not included. */
function foldersTo(root: string, paths: readonly string[]): readonly string[] {
  const folders = paths.flatMap((path) => {
    const way: string[] = []
    for (let at = path; at.startsWith(`${root}/`); at = dirname(at)) way.unshift(at.slice(root.length + 1))
    return way
  })
  return [...new Set(folders)]
}
