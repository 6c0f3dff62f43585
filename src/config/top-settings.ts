/** Defines the settings above the first section (the workspace, the default provider, model and agent) and the section [log]. */

import { type Rows, seconds } from '../kit/settings.ts'

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
  continue_turns: {
    type: 'choice',
    values: ['ask', 'auto', 'never'],
    absent: '"ask" in a conversation at a terminal, "auto" for schedules, "never" elsewhere',
    example: 'auto',
    about:
      'Whether a turn that a crash or a stop interrupted goes on at the next start. Its calls are judged again, and none is done twice.',
  },
} as const satisfies Rows

/** The helper that reads the text of pictures which people send; the one that answers need not see. */
export const visionRows = {
  provider: {
    type: 'text',
    form: 'provider',
    env: 'VISION_PROVIDER',
    absent: 'pictures are kept, and not read',
    example: 'openrouter',
    about: 'Which of [providers.models.NAME], openai-compatible, reads pictures; "openrouter" needs only OPENROUTER_API_KEY.',
  },
  model: {
    type: 'text',
    env: 'VISION_MODEL',
    default: 'nvidia/nemotron-nano-12b-v2-vl:free',
    about: 'The model that reads pictures.',
  },
  max_images: {
    type: 'whole',
    min: 0,
    max: 20,
    unit: 'pictures',
    env: 'VISION_MAX_IMAGES',
    default: 1,
    about: 'How many pictures of one message are read.',
  },
  max_chars_per_image: {
    type: 'whole',
    min: 100,
    max: 100_000,
    unit: 'characters',
    env: 'VISION_MAX_CHARS_PER_IMAGE',
    default: 4_000,
    about: 'The longest text of one picture that the model sees.',
  },
  max_total_chars: {
    type: 'whole',
    min: 100,
    max: 100_000,
    unit: 'characters',
    env: 'VISION_MAX_TOTAL_CHARS',
    default: 6_000,
    about: 'The longest text of all pictures of one message that the model sees.',
  },
  timeout_s: { ...seconds, default: 60, about: 'How long reading the pictures of one message may take.' },
} as const satisfies Rows

export const logRows = {
  level: { type: 'choice', values: logLevels, default: 'warn', project: 'free', about: 'The least important messages shown on stderr.' },
} as const satisfies Rows
