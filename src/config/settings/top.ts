/** What stands above the first section: where the work is done, and who answers. */

import type { Setting } from '../setting.ts'

export const top: readonly Setting[] = [
  {
    key: 'workspace_dir',
    type: 'path',
    env: 'BRAIDCLAW_WORKSPACE',
    project: 'refused',
    absent: 'the folder you are in; for the daemon and its bridges, and in your home folder itself, ~/braidclaw-workspace',
    about: 'The folder the tools work in, wherever you are.',
  },
  {
    key: 'default_provider',
    type: 'text',
    form: 'provider',
    default: 'local',
    env: 'BRAIDCLAW_PROVIDER',
    about: 'Which of [providers.models.NAME] answers. "local", the offline helper, is always there.',
  },
  {
    key: 'default_model',
    type: 'text',
    form: 'any',
    env: 'BRAIDCLAW_MODEL',
    absent: "the provider's own model",
    about: 'The model asked of the default provider. Left aside when a stronger source (flag, environment) chooses another provider.',
  },
  {
    key: 'default_agent',
    type: 'text',
    form: 'agent',
    absent: '"default" for the filter, none for "agent"',
    project: 'refused',
    about: 'Whose soul, session and log a turn has: a folder under ~/.braidclaw/agents.',
  },
]
