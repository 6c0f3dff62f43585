/** Offers the skills of a conversation: a compact list for the prompt, the text of one on demand, and its folder for commands. */

import { join, relative } from 'node:path'
import { type FoundSkill, readSkills } from '../../../../discovery/skill-files.ts'
import { findFiles, isInside, openTextFiles } from '../../../../discovery/text-files.ts'
import { didYouMean, flat, quote, visible, visibleLines } from '../../../../kit/text.ts'
import type { ToolResult } from '../../../../runtime/port.ts'
import type { SpawnPlan } from '../../../../tools/process.ts'
import { done, fail } from '../../../../tools/tool-kind.ts'
import type { Setup } from '../../../api.ts'
import { openProjectFiles } from '../../../setup/project-files.ts'
import { openSkills, type Skills, skillRoots } from './skills.ts'

export type OfferedSkills = Awaited<ReturnType<typeof offerSkills>>

const heading = `
Skills say how something is done here. Read the one that fits with the tool skill before you do such work, and follow it; what is permitted stays with the gate.`

const [longestSummary, mostFiles, range] = [160, 30, { maxBytes: 65_536 }]

/** Reads the skills once; those of a project only when it is trusted. `workspace` is a real path. */
export async function offerSkills(setup: Setup, workspace: string) {
  const { skillState, skillScripts } = await openSkills(setup, workspace)
  const skills = await usableSkills(setup, workspace, skillState)
  const names = skills.map(({ skill }) => skill.name)

  /** The files of a project were made visible and redacted when they were read. */
  const shown = ({ source }: FoundSkill, text: string) => (source === 'project' ? text : setup.redactor.text(visibleLines(text)))
  const lineOf = (found: FoundSkill) => {
    const about = flat(shown(found, found.skill.description)).trim()
    return `- ${visible(found.skill.name)} — ${about.length > longestSummary ? `${about.slice(0, longestSummary)}…` : about}`
  }

  /** Gives the folder of the approved files a place that no machine has. */
  function scriptsOf({ skill: { name, skillDir } }: FoundSkill) {
    if (!/^[\w-]{1,64}$/.test(name)) return { ok: false as const, why: 'its name is not that of a folder' }
    return { ...skillScripts(skillDir), place: `/skills/${name}` }
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
    const { skillDir } = found.skill
    const path = relative(workspace, join(skillDir, file))
    const isProject = found.source === 'project' && isInside(skillDir, join(skillDir, file))
    const read = isProject ? openProjectFiles(setup, workspace).readText(path, range) : openTextFiles(skillDir).readText(file, range)
    if (!read.ok) return fail(read.message)
    return done(`${shown(found, read.text)}${read.more ? `\n[cut: the file has ${read.size} bytes]` : ''}`)
  }

  return {
    list: skills,
    textOf,
    /** Returns the section of the system prompt, with a line for each skill that fits into so many bytes; undefined without a skill, or without room. */
    index(maxBytes: number): string | undefined {
      const lines = skills.map(lineOf)
      return lines.length === 0 || maxBytes === 0 ? undefined : setup.redactor.text([heading, ...fitting(lines, maxBytes)].join('\n'))
    },
    /** Reads NAME or NAME/FILE. */
    read(asked: string): ToolResult {
      const [name = '', ...file] = asked.trim().split('/')
      const found = skills.find(({ skill }) => skill.name === name)
      const near = didYouMean(name, names)
      if (!found) return fail(`no skill ${quote(name)}${near || '; discover finds skills by what is to be done'}`)
      // It may have changed since the conversation began.
      const { usable, why = '' } = skillState(found.skill.skillDir)
      if (!usable) return fail(why)
      return file.length === 0 ? done(textOf(found)) : readFile(found, file.join('/'))
    },
    /** Shows a command the folders of the skills that it names, read-only. */
    shownTo<Plan extends Pick<SpawnPlan, 'argv' | 'readablePaths'>>(plan: Plan): Plan {
      const words = plan.argv.join('\n')
      const folders = skills.flatMap((found) => {
        const isNamed = new RegExp(`(?<![\\w.~-])/skills/${RegExp.escape(found.skill.name)}(?![\\w-])`).test(words)
        const scripts = isNamed ? scriptsOf(found) : undefined
        return scripts?.ok ? [{ path: scripts.place, from: scripts.folder }] : []
      })
      return folders.length === 0 ? plan : { ...plan, readablePaths: [...(plan.readablePaths ?? []), ...folders] }
    },
  }
}

async function usableSkills(setup: Setup, workspace: string, skillState: Skills['skillState']): Promise<readonly FoundSkill[]> {
  // Of two with one name the first counts, so one that may not be used must not be among them.
  const roots = skillRoots(setup, workspace).filter(({ root, path }) => path === '' || skillState(join(root, path)).usable)
  const { skills: all, notices } = await readSkills(roots)
  for (const notice of notices) setup.log('debug', visible(notice))
  return all.filter(({ skill: { name, skillDir } }) => {
    const { usable, why = '' } = skillState(skillDir)
    if (!usable) setup.log('warn', visible(`skill ${name} is not offered: ${why}`))
    return usable
  })
}

/** Returns the first lines that fit, and how many do not. */
function fitting(lines: readonly string[], maxBytes: number): readonly string[] {
  const end = lines.findIndex((_, at) => Buffer.byteLength(lines.slice(0, at + 1).join('\n')) > maxBytes)
  return end < 0 ? lines : [...lines.slice(0, end), `- ${lines.length - end} more: find them with discover`]
}
