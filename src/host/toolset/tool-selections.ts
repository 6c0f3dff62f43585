/** Selects the tools for the operator's own commands: without `--tools` more than a model gets. */

import { existsSync } from 'node:fs'
import type { Setup } from '../api.ts'
import { builtInNames, builtInTools, type ToolSelection } from './tool-selection.ts'

/** Returns the built-in tools and everything in tools.dir; without that folder it looks for nothing. */
export async function everything(setup: Setup): Promise<ToolSelection> {
  const { dir } = setup.config.tools
  if (!existsSync(dir)) return builtInTools
  return { ...builtInTools, more: (await import('./executable-tools.ts')).executablesFrom(setup, { at: dir }) }
}

/** Selects the tool that the operator named: of tools.dir it looks only for that executable. */
export async function wishFor(setup: Setup, name: string, spec: string | undefined): Promise<ToolSelection> {
  if (spec !== undefined) return (await import('./tools-option.ts')).parseToolsOption(setup, spec)
  const { dir } = setup.config.tools
  if (builtInNames.includes(name) || !existsSync(dir)) return builtInTools
  return { ...builtInTools, more: (await import('./executable-tools.ts')).executablesFrom(setup, { at: dir, asked: [{ name }] }) }
}
