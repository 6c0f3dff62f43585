/** Opens the plugins of a home. A plugin runs only from a private copy of the files that were approved. */

import { join } from 'node:path'
import { readConfigFile } from '../../../../config/text/read-toml-file.ts'
import { quote } from '../../../../kit/text.ts'
import { approvedPlugins } from '../../tool-selection.ts'
import { type FolderBook, failure, type GuestFolder, openFolderBook, type SoundFolder } from '../folders/folder-book.ts'
import { readFolderFiles } from '../folders/folder-files.ts'
import { manifestName, type PluginManifest, readManifest } from './manifest.ts'

export type Plugin = GuestFolder<PluginManifest>
export type SoundPlugin = SoundFolder<PluginManifest>
export type Plugins = FolderBook<PluginManifest>

/** No folder needs to exist. */
export function openPlugins(home: string): Plugins {
  return openFolderBook({ home, noun: 'plugin', book: approvedPlugins(home), root: join(home, 'plugins'), check: checkFolder })
}

/**
 * Reads the manifest of a folder and checks that the programs that it names are there. It runs nothing. @param as the beginning of each
 * problem. @throws FailureError that names every problem
 */
export function checkFolder(folder: string, as: string, files = readFolderFiles(folder)) {
  const fail = (...problems: readonly string[]) => failure(as, ...problems)
  if (!files.ok) throw fail(files.why)
  const read = readConfigFile(join(folder, manifestName))
  if (read.state !== 'text') throw fail(read.state === 'missing' ? `it has no ${manifestName}` : `${manifestName} ${read.why}`)
  const parsed = readManifest(read.text)
  if (!parsed.ok) throw fail(...parsed.problems.map((problem) => `${manifestName}: ${problem}`))
  const { process, tools, hooks } = parsed.manifest
  const programs = [process, ...[...tools, ...hooks].map(({ command }) => command)].filter((path) => path !== undefined)
  const wrong = programs.filter((path) => !/^[xl]/.test(files.files[path] ?? ''))
  const says = (path: string) => (path in files.files ? `is not executable; run: chmod +x ${quote(path)}` : 'does not exist')
  if (wrong.length > 0) throw fail(...new Set(wrong.map((path) => `${quote(path)} ${says(path)}`)))
  return { manifest: parsed.manifest, files }
}
