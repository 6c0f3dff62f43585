/** Finds the skill that a task asks for, as the heartbeat of an agent does: the first one in the library whose pattern matches. */

import { type Skill, type SkillOwner, skillsOf } from './skill.ts'

export type AskedTask = { readonly title: string; readonly description: string }

/** A description may be long; what a task asks for stands at its beginning. */
const searchedText = 8_192

/** The title and the description are matched apart, so that no pattern spans both. */
export function matchSkill(skills: readonly Skill[], owner: SkillOwner, { title, description }: AskedTask): Skill | undefined {
  const texts = [title, description.slice(0, searchedText)]
  return skillsOf(skills, owner).find(({ invoke }) => invoke.some(({ matches }) => texts.some(matches)))
}
