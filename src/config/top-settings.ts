/** Defines the settings above the first section (the workspace, the default provider, model and agent) and the section [log]. */

import type { Rows } from '../kit/settings.ts'

export const logLevels = ['debug', 'info', 'warn', 'error'] as const

export const topRows = {
  workspace_dir: {
    type: 'path',
    env: 'BRAIDCLAW_WORKSPACE',
    computed: 'the folder you are in; for the daemon and its bridges, and in your home folder itself, ~/braidclaw-workspace',
    example: '~/braidclaw-workspace',
    about: 'The folder the tools work in, wherever you are.',
  },
  default_provider: {
    type: 'text',
    form: 'provider',
    default: 'local',
    env: 'BRAIDCLAW_PROVIDER',
    project: 'free',
    about: 'Which of [providers.models.NAME] answers. "local", the offline helper, is always there.',
  },
  default_model: {
    type: 'text',
    env: 'BRAIDCLAW_MODEL',
    computed: "the provider's own model",
    project: 'free',
    about: 'The model asked of the default provider. Left aside when a stronger source (flag, environment) chooses another provider.',
  },
  default_agent: {
    type: 'text',
    form: 'agent',
    absent: '"default" for the filter, none for "agent"',
    example: 'coder',
    about: 'Whose soul, session and log a turn has: a folder under ~/.braidclaw/agents.',
  },
} as const satisfies Rows

export const logRows = {
  level: { type: 'choice', values: logLevels, default: 'warn', project: 'free', about: 'The least important messages shown on stderr.' },
} as const satisfies Rows
