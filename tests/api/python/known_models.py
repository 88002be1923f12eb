"""Models of torchvision and of Hugging Face's transformers by their configurations: no weights are fetched."""

import torch
import torchvision.models
import transformers

#: A vocabulary that tensor cores divide evenly, as the shipped profiles have it.
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


def llama(hidden, intermediate, layers, tied):
    """Llama 3 of that size, in bfloat16: 32 heads, of which four share a key and a value."""
    config = transformers.LlamaConfig(
        vocab_size=128256,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=hidden // 32,
        tie_word_embeddings=tied,
    )
    return transformers.LlamaForCausalLM(config).to(torch.bfloat16)


#: By the names of the shipped profiles.
MODELS = {
    "resnet50": torchvision.models.resnet50,
    "resnet50_v100": torchvision.models.resnet50,
    "resnet101": torchvision.models.resnet101,
    "vgg16": torchvision.models.vgg16,
    "vgg16_v100": torchvision.models.vgg16,
    "bert_base": lambda: bert(transformers.BertForPreTraining, 768, 12),
    "bert_large": lambda: bert(transformers.BertForPreTraining, 1024, 24),
    "bert_qa": lambda: bert(transformers.BertForQuestionAnswering, 768, 12),
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config()),
    "llama3_1b": lambda: llama(2048, 8192, 16, tied=True),
    "llama3_8b": lambda: llama(4096, 14336, 32, tied=False),
}


def on_meta(name):
    """With sizes and no memory."""
    with torch.device("meta"):
        return MODELS[name]()
