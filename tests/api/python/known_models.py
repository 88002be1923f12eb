"""Models of torchvision and of Hugging Face's transformers by their configurations: no weights are fetched."""

import torch
import torchvision.models
import transformers

#: A vocabulary that tensor cores divide evenly, as the shipped profiles and the measured gradients have it.
VOCABULARY = 30528


def bert(kind, hidden, layers):
    """BERT uncased of that size; a head has 64 of its columns."""
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
    )
    return kind(config)


def llama():
    """Llama 3.2 1B: its published configuration."""
    config = transformers.LlamaConfig(
        vocab_size=128256,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        tie_word_embeddings=True,
    )
    return transformers.LlamaForCausalLM(config)


MODELS = {
    "resnet50": torchvision.models.resnet50,
    "resnet101": torchvision.models.resnet101,
    "vgg16": torchvision.models.vgg16,
    "bert_base": lambda: bert(transformers.BertForPreTraining, 768, 12),
    "bert_large": lambda: bert(transformers.BertForPreTraining, 1024, 24),
    "bert": lambda: bert(transformers.BertForQuestionAnswering, 768, 12),
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config()),
    "llama": llama,
}


def on_meta(name):
    """With sizes and no memory."""
    with torch.device("meta"):
        return MODELS[name]()
