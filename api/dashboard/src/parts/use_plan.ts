// The command that runs a plan, and the plan as other frameworks' settings.

import { html, nothing, type TemplateResult } from 'lit-html';
import type { Got } from '../api/client';
import type { PlanDetail } from '../api/types';
import { command, segmented } from './bits';

export type Exports = Got<'/v1/plans/{id}/exports/{target}'>;

const TARGETS: readonly { value: Exports['target']; text: string }[] = [
  { value: 'ddp', text: 'PyTorch DDP' }, { value: 'ddp-single', text: 'DDP before 2.13' }, { value: 'fsdp2', text: 'FSDP2' }, { value: 'deepspeed', text: 'DeepSpeed' }, { value: 'megatron', text: 'Megatron-LM' },
  { value: 'horovod', text: 'Horovod' }, { value: 'byteps', text: 'BytePS' }, { value: 'nccl', text: 'NCCL' }, { value: 'env', text: 'Environment' },
];

export function useFigure(plan: PlanDetail, method: string, exports: Exports, target: Exports['target'], onTarget: (target: Exports['target']) => void): TemplateResult {
  const run = method === plan.method ? `tune run ${plan.digest} --hosts hosts.txt` : `tune run ${plan.digest} --method ${method} --hosts hosts.txt`;
  return html`<h3>On its hosts</h3>${command(run, 'run command')}
    <h3>As another framework's settings</h3>
    ${segmented('Framework', TARGETS, target, (value) => onTarget(value as Exports['target']))}
    ${command(exports.text.trimEnd(), 'settings')}
    ${exports.not_expressed.length > 0 ? html`<div class="note warn small"><strong>Not expressed</strong><ul class="list">${exports.not_expressed.map((line) => html`<li>${line}</li>`)}</ul></div>` : nothing}`;
}
