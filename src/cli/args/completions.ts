/** What the shell offers for an argument: names that are known here. In doubt nothing; a completion never complains. */

import type { CliContext } from '../../channels/terminal/context.ts'

export const shells = ['bash', 'zsh', 'fish']

export function proposeShells(this: CliContext, partial: string): readonly string[] {
  return shells.filter((name) => name.startsWith(partial))
}

export async function proposeProviders(this: CliContext, partial: string): Promise<readonly string[]> {
  return quietly(async () => {
    const { setUp } = await import('../../host/setup/setup.ts')
    return Object.keys(setUp(this).config.providers.models).filter((name) => name.startsWith(partial))
  })
}

export async function proposeTools(this: CliContext, partial: string): Promise<readonly string[]> {
  return quietly(async () => {
    const [{ setUp }, { createHands }, { policyOf }] = await Promise.all([
      import('../../host/setup/setup.ts'),
      import('../../host/toolset/tool-executor.ts'),
      import('../../host/setup/effective-policy.ts'),
    ])
    const setup = setUp(this)
    const hands = await createHands({ setup, policy: policyOf(setup.config, setup.paths, this.env), conversationId: 'completion' })
    return hands.tools.map(({ name }) => name).filter((name) => name.startsWith(partial))
  })
}

export async function proposeAgents(this: CliContext, partial: string): Promise<readonly string[]> {
  return quietly(async () => {
    const [{ setUp }, { agentsOf }] = await Promise.all([import('../../host/setup/setup.ts'), import('../../host/setup/agent-profile.ts')])
    return agentsOf(setUp(this)).filter((id) => id.startsWith(partial))
  })
}

async function quietly(find: () => Promise<readonly string[]>): Promise<readonly string[]> {
  try {
    return await find()
  } catch {
    return []
  }
}
