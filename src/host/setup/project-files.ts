/** Reads the files by which a project instructs the model: by the rules of the gate, never outside the workspace, without keys. */

import { type FittedInstruction, fitInstruction } from '../../discovery/instruction-room.ts'
import { visibleLines } from '../../kit/text.ts'
import { judgePath } from '../../security/targets/path.ts'
import { discover, type ProjectTool, skill } from '../../tools/builtin/discover.ts'
import type { Workspace } from '../../workspace/contract.ts'
import { instructionBytes } from '../../workspace/instruction-file.ts'
import { openWorkspace } from '../../workspace/workspace.ts'
import type { Setup } from '../api.ts'
import { policyOf } from './effective-policy.ts'

export type InstructionRead = ({ readonly ok: true } & FittedInstruction) | { readonly ok: false; readonly why: string }

/** Reads one file as plain text. Never throws. `room` is how many bytes are left; with none left the model only learns that it exists. */
export type InstructionReader = (path: string, room: number) => InstructionRead

/** Applies the gate's own path rules, whatever they permit outside the workspace. */
export function openProjectFiles({ config, paths, context, redactor }: Setup, workspace: string): Pick<Workspace, 'readText'> {
  const { forbiddenPaths, forbiddenReads, protectedPaths, home } = policyOf(config, paths, context.env)
  const policy = { forbiddenPaths, forbiddenReads, protectedPaths, home, workspace, workspaceOnly: true }
  const files = openWorkspace({ root: workspace, check: (path, access) => judgePath({ path, access, cwd: workspace, policy }) })
  return {
    readText(path, range) {
      const read = files.readText(path, range)
      return read.ok ? { ...read, text: redactor.text(visibleLines(read.text)) } : read
    },
  }
}

export function openReader(setup: Setup, workspace: string): InstructionReader {
  const files = openProjectFiles(setup, workspace)
  return (path, room) => {
    const read = files.readText(path, { maxBytes: Math.max(room, 1) })
    if (!read.ok) return { ok: false, why: read.message }
    if (read.invalid) return { ok: false, why: `${JSON.stringify(path)} is not valid UTF-8` }
    return { ok: true, ...fitInstruction({ ...read, path }, { room, most: instructionBytes }) }
  }
}

/** Returns the tools for a project that has skills or linked documents. */
export function projectTools(hasSkills: boolean): readonly ProjectTool[] {
  return hasSkills ? [discover, skill] : [discover]
}
