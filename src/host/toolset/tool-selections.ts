/** The tools that an operator's own commands look at: without `--tools` more than a model is offered. */

import { existsSync } from 'node:fs'
import type { Setup } from '../api.ts'
import { builtInNames, builtInTools, type ToolSelection } from './tool-selection.ts'

/** The ten and whatever lies in tools.dir; without that folder nothing is looked for. */
export async function everything(setup: Setup): Promise<ToolSelection> {
  const { dir } = setup.config.tools
  if (!existsSync(dir)) return builtInTools
  return { ...builtInTools, more: (await import('./executable-tools.ts')).executablesFrom(setup, { at: dir }) }
}

/** Whoever types a name means it: of tools.dir only that executable is looked for. */
export async function wishFor(setup: Setup, name: string, spec: string | undefined): Promise<ToolSelection> {
  if (spec !== undefined) return (await import('./tools-option.ts')).parseToolsOption(setup, spec)
  const { dir } = setup.config.tools
  if (builtInNames.includes(name) || !existsSync(dir)) return builtInTools
  return { ...builtInTools, more: (await import('./executable-tools.ts')).executablesFrom(setup, { at: dir, asked: [{ name }] }) }
}
