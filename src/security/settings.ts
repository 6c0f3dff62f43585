/** Declares the [security] settings: what tools may do and what is always refused. */

import type { Rows } from '../kit/settings.ts'
import { usualForbidden } from './policy.ts'

export const autonomyLevels = ['readonly', 'supervised', 'full'] as const

export const securityRows = {
  autonomy: {
    type: 'choice',
    values: autonomyLevels,
    default: 'supervised',
    env: 'BRAIDCLAW_AUTONOMY',
    project: 'stricter',
    init: 'written',
    about:
      'readonly: only low-risk tools. supervised: medium risk asks first, high risk is refused. full: low and medium run by themselves.',
  },
  workspace_only: {
    type: 'boolean',
    default: true,
    project: 'stricter',
    init: 'written',
    about: 'Refuse every path outside the workspace.',
  },
  forbidden_paths: {
    type: 'paths',
    default: ['/etc', '/sys', '/boot', '~/.ssh'],
    project: 'union',
    init: 'written',
    about: 'Paths that no tool and no command may touch, nor anything below them; links are followed.',
  },
  forbidden_reads: {
    type: 'words',
    form: 'any',
    default: [
      ...['.env', '.env.*', '!.env.example', '!.env.sample', '!.env.template', '!.env.dist', '*.pem', '*.p12', '*.pfx'],
      ...['id_rsa', 'id_dsa', 'id_ecdsa', 'id_ecdsa_sk', 'id_ed25519', 'id_ed25519_sk', '.netrc', '.pgpass', '.git-credentials'],
      ...[
        'credentials.json',
        'client_secret*.json',
        '**/.aws/credentials',
        '**/.cargo/credentials*',
        '!**/node_modules/**',
        '!**/site-packages/**',
      ],
    ],
    about:
      'Files that no tool and no command reads; their names are listed. Patterns as in .gitignore: without "/" a name in any folder, "!" makes an exception, a later one overrides an earlier one.',
  },
  forbidden_commands: {
    type: 'words',
    form: 'command',
    default: usualForbidden,
    project: 'union',
    init: 'written',
    about: 'Commands that never run, however they are hidden in a command line. Without a private view this default forbids rm, too.',
  },
  allow_commands: {
    type: 'words',
    form: 'command',
    default: [],
    about:
      'Commands of medium risk in addition to the built-in list ("security show" prints both); see unlisted_commands for every other command.',
  },
  allowed_domains: {
    type: 'words',
    form: 'domain',
    default: [],
    about:
      'Hosts that the http tool may read from as a low risk, and that a command may be given. "@npm", "@pypi", "@crates", "@go", "@rubygems" and "@github" stand for the hosts of that registry.',
  },
  allowed_ports: { type: 'ports', default: [], about: 'Ports that the http tool may connect to in addition to 80 and 443.' },
  approve_all_medium: {
    type: 'boolean',
    default: false,
    about: 'Run commands and apply harmless changes without asking; everything else still asks.',
  },
  ask: {
    type: 'choice',
    values: ['before', 'changes'],
    default: 'changes',
    project: 'stricter',
    about:
      'When supervised asks about a command. changes: it runs on a private view of the workspace, and only its changes ask (where such views work; elsewhere like before). before: it asks before it runs.',
  },
  unlisted_commands: {
    type: 'choice',
    values: ['block', 'ask'],
    default: 'ask',
    project: 'stricter',
    about:
      'What supervised does with a command that is not allow-listed. ask: a person may approve it where a sandbox confines it. block: it is refused.',
  },
  readonly_commands: {
    type: 'choice',
    values: ['block', 'drop'],
    default: 'block',
    project: 'stricter',
    about: 'What readonly does with a command that may write. block: it is refused. drop: it runs, and its changes are always dropped.',
  },
  egress: {
    type: 'choice',
    values: ['ask', 'open'],
    default: 'ask',
    project: 'stricter',
    about:
      'What full does with a host that allowed_domains does not list. ask: a person has to allow it. open: it is reached without a question.',
  },
  direct: {
    type: 'choice',
    values: ['deny', 'ask', 'allow'],
    default: 'ask',
    project: 'stricter',
    about:
      'What happens to a command that asks to work on the workspace itself, without a private view. ask: a person has to allow it, at every level. allow: full runs it without a question. deny: it is refused.',
  },
  tool_settings: {
    type: 'choice',
    values: ['ask', 'allow'],
    default: 'ask',
    project: 'stricter',
    about:
      'What full does with changes of dot files, the configuration of tools and instructions for agents, which other programs run or obey unasked. ask: a person has to allow them. allow: they are applied.',
  },
  allow_tools: {
    type: 'words',
    form: 'tool',
    default: [],
    about:
      'Executables that count as a low risk and so run without a question; all others are of medium risk, whatever they say of themselves.',
  },
  audit_log: { type: 'boolean', default: true, init: 'written', about: 'Log every verdict of the gate.' },
} as const satisfies Rows
