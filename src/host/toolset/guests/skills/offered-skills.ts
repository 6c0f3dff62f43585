/** Offers the skills of a conversation: a compact list for the prompt, the text of one on demand, and its folder for commands. */

import { join, relative } from 'node:path'
import { createHybridIndex } from '../../../../discovery/hybrid-index.ts'
import { type FoundSkill, readSkills, skillEntry } from '../../../../discovery/skill-files.ts'
import { findFiles, isInside, openTextFiles } from '../../../../discovery/text-files.ts'
import { flat, visible, visibleLines } from '../../../../kit/text.ts'
import type { SpawnPlan } from '../../../../tools/process.ts'
import type { Setup } from '../../../api.ts'
import { openProjectFiles } from '../../../setup/project-files.ts'
import { openSkills, skillRoots } from './skills.ts'

export type OfferedSkills = Awaited<ReturnType<typeof offerSkills>>

const [longestSummary, mostFiles, range] = [160, 30, { maxBytes: 65_536 }]

/** Reads the skills once; those of a project only when it is trusted. `workspace` is a real path. */
export async function offerSkills(setup: Setup, workspace: string) {
  const { skillState, skillScripts } = await openSkills(setup, workspace)
  // Of two with one name the first counts, so one that may not be used must not be among them.
  const roots = skillRoots(setup, workspace).filter(({ root, path }) => path === '' || skillState(join(root, path)).usable)
  const { skills: all, notices } = await readSkills(roots)
  for (const notice of notices) setup.log('debug', visible(notice))
  const skills = all.filter(({ skill: { name, skillDir } }) => {
    const { usable, why = '' } = skillState(skillDir)
    if (!usable) setup.log('warn', visible(`skill ${name} is not offered: ${why}`))
    return usable
  })
  const named = (name: string) => skills.find((found) => found.skill.name === name)

  /** The files of a project were made visible and redacted when they were read. */
  const shown = ({ source }: FoundSkill, text: string) => (source === 'project' ? text : setup.redactor.text(visibleLines(text)))
  const lineOf = (found: FoundSkill) => {
    const about = flat(shown(found, found.skill.description)).trim()
    return `- ${visible(found.skill.name)} — ${about.length > longestSummary ? `${about.slice(0, longestSummary)}…` : about}`
  }

  /** Says where commands find the files: a project's skill lies in the workspace, and others get a place that no machine has. */
  function scriptsOf({ skill: { name, skillDir }, source }: FoundSkill) {
    const scripts = skillScripts(skillDir)
    if (source === 'project') return { ok: true as const, folder: skillDir, place: relative(workspace, skillDir) }
    if (!scripts.ok) return scripts
    return /^[\w-]{1,64}$/.test(name)
      ? { ...scripts, place: `/skills/${name}` }
      : { ok: false as const, why: 'its name is not that of a folder' }
  }

  /** Returns the body below a line with the name, the folder and the files of the skill. */
  function textOf(found: FoundSkill): string {
    const { name, skillDir } = found.skill
    const files = findFiles(skillDir, { ending: '' }).found.filter((file) => file !== 'SKILL.md')
    const more = files.length > mostFiles ? ` and ${files.length - mostFiles} more` : ''
    const list = files.length === 0 ? '' : `; files in it: ${files.slice(0, mostFiles).map(visible).join(', ')}${more}`
    const scripts = scriptsOf(found)
    const place = scripts.ok ? `its folder for commands: ${visible(scripts.place)}` : `no script of it may run: ${visible(scripts.why)}`
    return `Skill ${visible(name)} (${place}${list})\n\n${shown(found, found.body)}`
  }

  function readFile(found: FoundSkill, file: string) {
    const { skill, source } = found
    const { skillDir } = skill
    const path = join(skillDir, file)
    const files = source === 'project' && isInside(skillDir, path) ? openProjectFiles(setup, workspace) : openTextFiles(skillDir)
    const read = files.readText(source === 'project' ? relative(workspace, path) : file, range)
    if (!read.ok) return { ok: false, text: read.message }
    return { ok: true, text: `${shown(found, read.text)}${read.more ? `\n[cut: the file has ${read.size} bytes]` : ''}` }
  }

  function search(words: string): readonly FoundSkill[] {
    const index = createHybridIndex<ReturnType<typeof skillEntry> & { readonly found: FoundSkill }>()
    index.put(skills.map((found) => ({ ...skillEntry(found), found })))
    return index.search(words).map(({ entry }) => entry.found)
  }

  return {
    list: skills.map(({ skill }) => skill),
    /** Returns a line for each skill, as many as fit into so many bytes; undefined without a skill, or without room. */
    index(maxBytes: number): string | undefined {
      if (skills.length === 0 || maxBytes === 0) return undefined
      const lines: string[] = []
      let room = maxBytes
      for (const found of skills) {
        room -= Buffer.byteLength(lineOf(found)) + 1
        if (room < 0) break
        lines.push(lineOf(found))
      }
      const rest = skills.length - lines.length
      return setup.redactor.text([...lines, ...(rest > 0 ? [`- ${rest} more: find them with discover`] : [])].join('\n'))
    },
    /** @throws TypeError without a skill of this name */
    textOf: (name: string) => textOf(named(name) as FoundSkill),
    /** Reads NAME or NAME/FILE; other words find the skills that fit. */
    read(asked: string): { readonly ok: boolean; readonly text: string } {
      const [name = '', ...file] = asked.trim().split('/')
      const found = named(name)
      // It may have changed since the conversation began.
      const { usable, why = '' } = found ? skillState(found.skill.skillDir) : { usable: true }
      if (!usable) return { ok: false, text: why }
      if (found) return file.length === 0 ? { ok: true, text: textOf(found) } : readFile(found, file.join('/'))
      const hits = search(asked)
      if (hits.length > 0) return { ok: true, text: ['No skill has this name; these fit:', ...hits.map(lineOf)].join('\n') }
      return { ok: false, text: 'no skill has this name, and none fits; discover also finds documents' }
    },
    /** Shows a command the folders of the skills that it names, read-only. */
    shownTo<Plan extends Pick<SpawnPlan, 'argv' | 'readablePaths'>>(plan: Plan): Plan {
      const words = plan.argv.join('\n')
      const folders = skills.flatMap((found) => {
        const isNamed = new RegExp(`(?<![\\w.~-])/skills/${RegExp.escape(found.skill.name)}(?![\\w-])`).test(words)
        const scripts = isNamed && found.source !== 'project' ? scriptsOf(found) : undefined
        return scripts?.ok ? [{ path: scripts.place, from: scripts.folder }] : []
      })
      return folders.length === 0 ? plan : { ...plan, readablePaths: [...(plan.readablePaths ?? []), ...folders] }
    },
  }
}
