/** Defines a skill of agent/library.yaml: what an agent can do, which tasks ask for it, and how it is done. */

export type Invoke = { readonly source: string; readonly matches: (text: string) => boolean }

export type Skill = {
  readonly name: string
  /** One line for the index. */
  readonly summary: string
  /** Who has it; both empty: everybody. */
  readonly roles: readonly string[]
  readonly agents: readonly string[]
  readonly invoke: readonly Invoke[]
  /** How it is done, as Markdown; empty: the summary says all. */
  readonly content: string
  /** A program with its arguments that does it without a model. */
  readonly command?: readonly string[]
}

export type SkillOwner = { readonly id: string; readonly role: string }

export function skillsOf(skills: readonly Skill[], { id, role }: SkillOwner): readonly Skill[] {
  return skills.filter(({ roles, agents }) => (roles.length === 0 && agents.length === 0) || roles.includes(role) || agents.includes(id))
}
